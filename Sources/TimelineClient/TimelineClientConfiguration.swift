import WidgetModel

/// Who a client is, and what it tells the gateway of itself.
public struct TimelineClientConfiguration: Sendable {
    /// How a client hears of what is stale.
    public enum Mode: Sendable, Equatable {
        /// A stream held open: within milliseconds.
        case stream
        /// A question every so often, for processes that cannot hold a connection.
        case poll(every: Duration)
    }

    /// The app's bundle id.
    public var app: String
    /// The id the app drew at its first launch.
    public var client: String
    /// WidgetKit's platform name.
    public var platform: String
    /// The system's version.
    public var osVersion: OSVersion?
    /// What rules may bind to; a token's attributes override them.
    public var attributes: [String: [String]]
    /// How else the gateway may tell this client.
    public var delivery: [DeliveryAddress]
    /// The widgets people have placed.
    public var widgets: [WidgetInfo]
    /// How it hears of what is stale.
    public var mode: Mode
    /// A provider that has not answered by then has failed; its late answer is dropped.
    public var buildDeadline: Duration
    /// Reload policies do not ask more often than this; WidgetKit has such a minimum too.
    public var policyReloadIntervalMin: Duration
    /// Reloads of each placed widget in any 24 hours, exempt ones aside; `nil` for no budget, as for
    /// a renderer that no battery feeds. See ``ReloadBudget/defaultLimit``.
    public var reloadBudget: Int?
    /// From a tap until a toggle of which nothing was heard shows its old state again.
    public var interactionTimeout: Duration
    /// Called for everything that happens, in order, by the client itself: it must return soon.
    public var observer: (@Sendable (TimelineClientEvent) -> Void)?

    /// A configuration.
    ///
    /// - Returns: `nil` unless `app` and `client` are 1 to 128 of `A-Za-z0-9._~-`.
    public init?(
        app: String, client: String, platform: String, osVersion: OSVersion? = nil,
        attributes: [String: [String]] = [:], delivery: [DeliveryAddress] = [.stream],
        widgets: [WidgetInfo] = [], mode: Mode = .stream,
        buildDeadline: Duration = .seconds(30),
        policyReloadIntervalMin: Duration = .seconds(300),
        reloadBudget: Int? = ReloadBudget.defaultLimit,
        interactionTimeout: Duration = .seconds(30),
        observer: (@Sendable (TimelineClientEvent) -> Void)? = nil
    ) {
        guard Identifier.isValid(app), Identifier.isValid(client) else { return nil }
        self.app = app
        self.client = client
        self.platform = platform
        self.osVersion = osVersion
        self.attributes = attributes
        self.delivery = delivery
        self.widgets = widgets
        self.mode = mode
        self.buildDeadline = buildDeadline
        self.policyReloadIntervalMin = policyReloadIntervalMin
        self.reloadBudget = reloadBudget
        self.interactionTimeout = interactionTimeout
        self.observer = observer
    }

    /// The device widgets are drawn for; `nil` for a platform that shows none.
    var device: WidgetDevice? {
        WidgetDevice.Platform(rawValue: platform).map { WidgetDevice($0, osVersion: osVersion) }
    }

    /// Whose an archive is.
    var owner: String { "\(app) \(client)" }

    var engineSettings: ReloadEngine.Settings {
        var settings = ReloadEngine.Settings()
        if case .poll(let interval) = mode {
            settings.pollInterval = max(interval, .seconds(1))
            // Nobody waits for what was asked for minutes ago: widgets are reloaded together.
            settings.schedule.batchWindow = ReloadScheduler.Settings().batchWindow
        }
        settings.schedule.policyIntervalMin = policyReloadIntervalMin / .seconds(1)
        settings.schedule.budgetLimit = reloadBudget
        return settings
    }
}

/// What a client tells the app it lives in.
public enum TimelineClientEvent: Sendable {
    /// The gateway took the registration; what it did not understand is in the warnings.
    case registered(warnings: [Fault])
    /// A stream is open, or a poll answered.
    case connected(resumedFrom: Cursor?)
    /// A notification verified. Its `controls` are for the app to act on; stale timelines, relevance
    /// and recommendation sets are rebuilt by the client.
    case notified(ReloadNotification)
    /// What is known of this kind's relevance is stale, says the gateway or the app. The client asks
    /// the kind's provider by itself.
    case relevanceInvalidated(kind: String)
    /// A notification did not verify; the same cursor is asked again.
    case unverified(VerificationFailure)
    /// A widget has a new timeline.
    case rebuilt(WidgetInfo, AnyTimeline)
    /// A provider failed; it is asked again later.
    case buildFailed(WidgetInfo, reason: String)
    /// A provider did not say what it recommends; it is asked again later.
    case recommendationsFailed(kind: String, reason: String)
    /// An intent that a person's tap called was performed, in this process.
    case performed(WidgetInfo, intent: String, in: IntentProcess)
    /// An intent that a person's tap called had no success; for people.
    case interactionFailed(WidgetInfo, reason: String)
    /// A request had no success; it is repeated where that can help.
    case failed(GatewayFailure)
    /// The archive was not written; a restart resumes from further back.
    case archiveFailed(ClientArchive.Failure)
}
