/// What the pushes of one type to one app have in common: an app's configuration, and where that
/// says nothing what Apple's documentation shows.
package struct APNsPushForm: Sendable, Hashable {
    /// The type.
    package let channel: PushBudget.Channel
    /// `apns-topic`: the app's bundle id, and what stands behind it for this type.
    package let topic: String
    /// `apns-priority`: 10, 5 or 1; `nil` sends none, which means 10.
    package let priority: Int?
    /// For how many seconds APNs keeps a push for a device that it does not reach; 0 for not at
    /// all, `nil` for as long as APNs likes, which may be 30 days.
    package let lifetime: Int64?
    /// `apns-collapse-id`: of pushes with the same one a device that was not reached gets one.
    package let collapseID: String?

    /// Longest `apns-collapse-id`, in bytes.
    package static let collapseIDBytesMax = 64
    /// Longest lifetime, in seconds: 30 days.
    package static let lifetimeMax: Int64 = 2_592_000
    /// The priority that type `background` must have.
    package static let backgroundPriority = 5

    /// Why a form would be refused.
    package enum Fault: Error, Sendable, Hashable {
        /// The priority is none, or not that of the type.
        case priority
        /// The lifetime is negative, or too long.
        case lifetime
        /// The collapse id is empty or too long, or has characters that a header field cannot have.
        case collapseID
        /// The app is no bundle id.
        case app
    }

    /// The form that Apple's documentation shows: `widgets` without priority and expiration,
    /// `controls` with priority 10 and without being kept, `background` with priority 5.
    ///
    /// - Throws: ``Fault`` (`app`).
    package init(_ channel: PushBudget.Channel, app: String) throws(Fault) {
        switch channel {
        case .widgets: try self.init(channel, app: app, priority: nil, lifetime: nil)
        case .controls: try self.init(channel, app: app, priority: 10, lifetime: 0)
        case .background:
            try self.init(channel, app: app, priority: Self.backgroundPriority, lifetime: nil)
        }
    }

    /// A form of one's own.
    ///
    /// - Throws: ``Fault``.
    package init(
        _ channel: PushBudget.Channel, app: String, priority: Int?, lifetime: Int64?,
        collapseID: String? = nil
    ) throws(Fault) {
        let isApp =
            !app.isEmpty && app.utf8.count <= 200
            && app.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "/") }
        guard isApp else { throw .app }
        switch (channel, priority) {
        case (.background, Self.backgroundPriority), (.widgets, nil), (.controls, nil): break
        case (.widgets, 1), (.widgets, 5), (.widgets, 10): break
        case (.controls, 1), (.controls, 5), (.controls, 10): break
        default: throw .priority
        }
        if let lifetime, !(0...Self.lifetimeMax).contains(lifetime) { throw .lifetime }
        if let collapseID {
            let isText = collapseID.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F }
            guard isText, (1...Self.collapseIDBytesMax).contains(collapseID.utf8.count) else {
                throw .collapseID
            }
        }
        self.channel = channel
        switch channel {
        case .widgets: topic = app + ".push-type.widgets"
        case .controls: topic = app + ".push-type.controls"
        case .background: topic = app
        }
        self.priority = priority
        self.lifetime = lifetime
        self.collapseID = collapseID
    }

    /// The header fields of a push that is sent now.
    ///
    /// - Parameter wall: Milliseconds since 1970.
    package func fields(wall: Int64) -> [(name: String, value: String)] {
        var fields = [(name: "apns-push-type", value: type), (name: "apns-topic", value: topic)]
        if let priority { fields.append((name: "apns-priority", value: String(priority))) }
        if let lifetime {
            let end = lifetime == 0 ? 0 : (wall / 1_000).later(by: lifetime)
            fields.append((name: "apns-expiration", value: String(end)))
        }
        if let collapseID { fields.append((name: "apns-collapse-id", value: collapseID)) }
        return fields
    }

    /// `apns-push-type`.
    private var type: String {
        switch channel {
        case .widgets: "widgets"
        case .controls: "controls"
        case .background: "background"
        }
    }

    /// The payload. It says nothing but that something changed: which is all that Apple's system
    /// reads, and nobody on the way learns what.
    package var payload: [UInt8] {
        channel == .background ? Self.wakingPayload : Self.reloadingPayload
    }

    /// Of types `widgets` and `controls`.
    package static let reloadingPayload = Array(#"{"aps":{"content-changed":true}}"#.utf8)
    /// Of type `background`.
    package static let wakingPayload = Array(#"{"aps":{"content-available":1}}"#.utf8)
}
