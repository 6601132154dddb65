import WidgetModel

/// The properties that all pushes of one type to one app share: those that the app's configuration
/// states, and otherwise those in Apple's documentation.
package struct APNsPushForm: Sendable, Hashable {
    package let type: APNsPushType
    /// `apns-topic`: the app's bundle id, with the suffix for this type.
    package let topic: String
    /// The field `apns-priority`: 10, 5 or 1; `nil` omits it, which means 10.
    package private(set) var priority: Int?
    /// The time that APNs stores a push for an unreachable device, seconds; 0 for not at all, `nil`
    /// for as long as APNs chooses, up to 30 days.
    package let lifetime: Int64?
    /// The time when APNs drops it, whatever the lifetime, ms since 1970; `nil` for none.
    private var end: Int64?
    /// The field `apns-collapse-id`: an unreachable device gets one of the pushes with the same id.
    package let collapseID: String?

    /// The longest `apns-collapse-id`, bytes.
    package static let collapseIDBytesMax = 64
    /// The longest lifetime, seconds: 30 days.
    package static let lifetimeMax: Int64 = 2_592_000
    /// The required priority of type `background`.
    package static let backgroundPriority = 5
    /// The default lifetime of a push for a Live Activity, seconds: as long as one is active.
    package static let activityLifetime: Int64 = 28_800

    /// The reason why a form is invalid.
    package enum Fault: Error, Sendable, Hashable {
        /// The priority is unknown, or not allowed for the type.
        case priority
        /// The lifetime is negative, or too long.
        case lifetime
        /// The collapse id is empty, too long, or invalid in a header field.
        case collapseID
        /// The app is not a valid bundle id.
        case app
    }

    /// Creates the form in Apple's documentation: `widgets` without priority and expiration,
    /// `controls` with priority 10 and not stored, `background` with priority 5, `liveactivity`
    /// with the priority of each push (``at(priority:until:)``).
    ///
    /// - Throws: ``Fault`` (`app`).
    package init(_ type: APNsPushType, app: String) throws(Fault) {
        switch type {
        case .widgets: try self.init(type, app: app, priority: nil, lifetime: nil)
        case .controls: try self.init(type, app: app, priority: 10, lifetime: 0)
        case .background:
            try self.init(type, app: app, priority: Self.backgroundPriority, lifetime: nil)
        case .liveactivity:
            try self.init(type, app: app, priority: nil, lifetime: Self.activityLifetime)
        }
    }

    /// Creates a form with explicit values.
    package init(
        _ type: APNsPushType, app: String, priority: Int?, lifetime: Int64?,
        collapseID: String? = nil
    ) throws(Fault) {
        guard Self.isApp(app) else { throw .app }
        switch (type, priority) {
        case (.background, Self.backgroundPriority), (.widgets, nil), (.controls, nil): break
        case (.widgets, 1), (.widgets, 5), (.widgets, 10): break
        case (.controls, 1), (.controls, 5), (.controls, 10): break
        case (.liveactivity, nil), (.liveactivity, 5), (.liveactivity, 10): break
        default: throw .priority
        }
        if let lifetime, !(0...Self.lifetimeMax).contains(lifetime) { throw .lifetime }
        if let collapseID {
            let isText = collapseID.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F }
            guard isText, (1...Self.collapseIDBytesMax).contains(collapseID.utf8.count) else {
                throw .collapseID
            }
        }
        self.type = type
        switch type {
        case .widgets: topic = app + ".push-type.widgets"
        case .controls: topic = app + ".push-type.controls"
        case .background: topic = app
        case .liveactivity: topic = app + ".push-type.liveactivity"
        }
        self.priority = priority
        self.lifetime = lifetime
        self.collapseID = collapseID
    }

    /// Returns whether a text may be a bundle id.
    package static func isApp(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= 200
            && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "/") }
    }

    /// The bundle id of the app.
    package var app: String {
        type == .background ? topic : String(topic.dropLast(".push-type.\(type)".count))
    }

    /// Returns the form of one push for a Live Activity: with its priority (10, 5, or `nil` for the
    /// default of 10) and the time after which APNs no longer stores it, ms since 1970. Returns
    /// forms of other types unchanged.
    package func at(priority: Int?, until end: Int64? = nil) -> APNsPushForm {
        guard type == .liveactivity, [nil, 5, 10].contains(priority) else { return self }
        var form = self
        form.priority = priority
        form.end = end
        return form
    }

    /// Returns the header fields of a push that is sent now.
    ///
    /// - Parameter wall: The time in ms since 1970.
    package func fields(wall: Int64) -> [(name: String, value: String)] {
        var fields = [
            (name: "apns-push-type", value: type.rawValue), (name: "apns-topic", value: topic),
        ]
        if let priority { fields.append((name: "apns-priority", value: String(priority))) }
        let longest = lifetime.map { $0 == 0 ? 0 : (wall / 1_000).later(by: $0) }
        if let expiration = [longest, end.map { $0 / 1_000 }].compactMap({ $0 }).min() {
            fields.append((name: "apns-expiration", value: String(expiration)))
        }
        if let collapseID { fields.append((name: "apns-collapse-id", value: collapseID)) }
        return fields
    }

    /// The payload that all pushes share. It says only that something changed: Apple's system reads
    /// no more than that, and no one on the way learns what changed. Empty for Live Activities,
    /// each of whose pushes has its own.
    package var payload: [UInt8] {
        switch type {
        case .widgets, .controls: Self.reloadingPayload
        case .background: Self.wakingPayload
        case .liveactivity: []
        }
    }

    /// The payload of types `widgets` and `controls`.
    package static let reloadingPayload = Array(#"{"aps":{"content-changed":true}}"#.utf8)
    /// The payload of type `background`.
    package static let wakingPayload = Array(#"{"aps":{"content-available":1}}"#.utf8)
}
