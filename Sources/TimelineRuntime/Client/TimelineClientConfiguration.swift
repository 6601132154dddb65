import Foundation
import TimelineGatewayClient
import WidgetModel
import WidgetViews

/// The identity of a client, and the settings it runs with.
public struct TimelineClientConfiguration: Sendable {
    /// The way in which a client learns what is stale.
    public enum Mode: Sendable, Equatable {
        /// An open stream: notifications arrive within milliseconds.
        case stream
        /// A poll at this interval, for processes that cannot hold a connection.
        case poll(every: Duration)
    }

    /// The app's bundle id.
    public var app: String
    /// The id that the app generated at its first launch.
    public var client: String
    /// The platform, by WidgetKit's name.
    public var platform: String
    /// The version of the operating system.
    public var osVersion: OSVersion?
    /// The attributes that catalog rules can refer to. The attributes of a token override them.
    public var attributes: [String: [String]]
    /// The addresses at which the gateway notifies this client.
    public var delivery: [DeliveryAddress]
    /// The widgets people have placed.
    public var widgets: [WidgetInfo]
    /// The way in which the client learns what is stale.
    public var mode: Mode
    /// The timeout for a provider. A build that takes longer has failed, and its late answer is
    /// dropped.
    public var buildDeadline: Duration
    /// The shortest interval between reloads by a reload policy. WidgetKit has such a minimum too.
    public var policyReloadIntervalMin: Duration
    /// The number of reloads of each placed widget in any 24 hours, exempt ones aside; `nil` for no
    /// budget, as for a renderer without a battery. See ``ReloadBudget/defaultLimit``.
    public var reloadBudget: Int?
    /// The time after a tap at which a toggle reverts if no new timeline has arrived.
    public var interactionTimeout: Duration
    /// Whether other processes of the app can reach the client over a socket in its archive; see
    /// ``ExtensionConnection``.
    public var acceptsRequests = false
    /// Whether other extensions register their own kinds of widgets for the same client. Each has
    /// an archive of its own.
    ///
    /// The gateway sees one client with one cursor. Each extension acknowledges only notifications
    /// that name one of its kinds. The cursor that one extension acknowledges or resumes from also
    /// counts for the kinds of the others, so a push for those may be left out. Their extension
    /// learns of the change when it resumes from its own cursor.
    public var sharesClient = false
    /// The person's locale, in which widgets are drawn.
    public var locale = Locale(identifier: "en")
    /// The size of texts that the person chose.
    public var dynamicTypeSize = DynamicTypeSize.large
    /// Called synchronously by the client for every event, in order; it must return quickly.
    public var observer: (@Sendable (TimelineClientEvent) -> Void)?

    /// Creates a configuration.
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

    /// The device that widgets are drawn for; `nil` for a platform without widgets.
    var device: WidgetDevice? {
        WidgetDevice.Platform(rawValue: platform).map {
            WidgetDevice(
                $0, osVersion: osVersion, locale: locale, dynamicTypeSize: dynamicTypeSize)
        }
    }

    /// The owner recorded in an archive.
    var owner: String { "\(app) \(client)" }

    /// The settings that change each drawing in an archive, whatever its context.
    var appearance: String { "\(locale.identifier) \(dynamicTypeSize.rawValue)" }

    var engineSettings: ReloadEngine.Settings {
        var settings = ReloadEngine.Settings()
        if case .poll(let interval) = mode {
            settings.pollInterval = max(interval, .seconds(1))
            // The result of a poll may be minutes old, so a short wait costs nothing: widgets are
            // reloaded together.
            settings.schedule.batchWindow = ReloadScheduler.Settings().batchWindow
        }
        settings.schedule.policyIntervalMin = policyReloadIntervalMin / .seconds(1)
        settings.schedule.budgetLimit = reloadBudget
        return settings
    }
}

/// An event that a client reports to its app.
public enum TimelineClientEvent: Sendable {
    /// The gateway accepted the registration. The warnings list the parts that it did not
    /// understand.
    case registered(warnings: [Fault])
    /// A stream was opened, or a poll answered.
    case connected(resumedFrom: Cursor?)
    /// A notification was verified. The client rebuilds what it names; controls that the app does
    /// not declare are for the app to act on.
    case notified(ReloadNotification)
    /// The gateway or the app reported that this kind's relevance is stale. The client asks the
    /// kind's provider again; the app need not.
    case relevanceInvalidated(kind: String)
    /// A notification failed verification. The client requests the same cursor again.
    case unverified(VerificationFailure)
    /// A placed widget has a value that its intent does not accept.
    case misconfigured(WidgetInfo, IntentError)
    /// A new timeline of a widget was built.
    case rebuilt(WidgetInfo, AnyTimeline)
    /// The entries of a new timeline are closer than ``EntrySequence/advisedSpacing``: so many
    /// seconds. They are shown at their dates here; WidgetKit may skip some.
    case entriesTooClose(WidgetInfo, seconds: TimeInterval)
    /// A provider failed. It is asked again later.
    case buildFailed(WidgetInfo, reason: String)
    /// A provider failed to return its recommendations. It is asked again later.
    case recommendationsFailed(kind: String, reason: String)
    /// A placed control was drawn with its current value.
    case controlRebuilt(kind: String)
    /// A provider failed to return the value of a control. It is asked again later.
    case controlFailed(kind: String, reason: String)
    /// An intent called by a tap was performed in this process.
    case performed(WidgetInfo, intent: String, in: IntentProcess)
    /// An intent called by a tap failed. The reason contains no value that a person chose, unlike
    /// the text that a toggle shows.
    case interactionFailed(WidgetInfo, reason: String)
    /// A request failed. It is retried where that can help.
    case failed(GatewayFailure)
    /// The archive was not written. A restart resumes from an earlier state.
    case archiveFailed(ClientArchive.Failure)
}
