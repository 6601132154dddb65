import WidgetModel

/// APNs' requirements on the form of a request, independent of its sender and device.
package struct PushRules: Sendable, Hashable {
    /// The longest payload, bytes.
    package var payloadBytesMax = 4_096
    /// The longest payload of a VoIP push and of a push to a channel, bytes.
    package var longPayloadBytesMax = 5_120
    /// The longest `apns-collapse-id`, bytes.
    package var collapseIDBytesMax = 64
    /// The bundle ids of existing apps; `nil` for any.
    package var apps: Set<String>?
    /// The bundle ids of apps with the broadcast capability; `nil` for any.
    package var broadcastApps: Set<String>?

    package init() {}

    /// The suffix of the topic after the bundle id, for each known push type.
    package static let topicSuffixes: [String: String] = [
        "alert": "", "background": "", "voip": ".voip", "complication": ".complication",
        "fileprovider": ".pushkit.fileprovider", "location": ".location-query",
        "liveactivity": ".push-type.liveactivity", "pushtotalk": ".voip-ptt",
        "widgets": ".push-type.widgets", "controls": ".push-type.controls",
    ]

    /// The priorities allowed for a push type, where not all are; `nil` for a push without one.
    private static let priorities: [String: Set<String?>] = [
        "background": ["5"], "liveactivity": [nil, "5", "10"],
    ]
    private static let allPriorities: Set<String?> = [nil, "1", "5", "10"]
    /// The longest `apns-channel-id`, bytes; Apple does not publish the limit.
    private static let channelIDBytesMax = 256

    package static func topics(ofApp app: String) -> Set<String> {
        Set(topicSuffixes.values.map { app + $0 })
    }

    /// Returns the reason why the request's method, path or header fields are rejected; `nil` if
    /// they are valid. ``refusalOfTopic(_:_:)`` checks the topic.
    package func refusalOfFields(_ request: PushRequest) -> APNsReason? {
        let route = request.channelRoute?.route
        guard route != nil || request.deviceToken != nil else { return .badPath }
        switch (route, request.method) {
        case (nil, "POST"), (.push?, "POST"), (.manage?, "POST"), (.manage?, "GET"),
            (.manage?, "DELETE"), (.list?, "GET"):
            break
        default: return .methodNotAllowed
        }
        guard !request.isFieldRepeated else { return .duplicateHeaders }
        if let token = request.deviceToken {
            guard !token.isEmpty else { return .missingDeviceToken }
            guard Self.isHexadecimal(token) else { return .badDeviceToken }
        }
        if let route, let reason = refusalOfChannelFields(request, route) { return reason }
        if let id = request.idText, PushID(id) == nil { return .badMessageID }
        if let type = request.pushType, type != "mdm", Self.topicSuffixes[type] == nil {
            return .invalidPushType
        }
        if let expiration = request.expiration, !Self.isNumber(expiration) {
            return .badExpirationDate
        }
        let priorities = request.pushType.flatMap { Self.priorities[$0] } ?? Self.allPriorities
        guard priorities.contains(request.priority) else { return .badPriority }
        if let collapseID = request.collapseID, collapseID.utf8.count > collapseIDBytesMax {
            return .badCollapseID
        }
        return nil
    }

    /// Returns the reason why the fields that only requests about channels have are rejected; `nil`
    /// if they are valid.
    private func refusalOfChannelFields(
        _ request: PushRequest, _ route: PushRequest.ChannelRoute
    ) -> APNsReason? {
        if route == .list || route == .manage && request.method == "POST" { return nil }
        guard let id = request.channelID else { return .missingChannelID }
        guard !id.isEmpty, id.utf8.count <= Self.channelIDBytesMax,
            Base64.standard.decode(id) != nil
        else { return .badChannelID }
        guard route == .push else { return nil }
        guard let type = request.pushType else { return .missingPushType }
        guard type == "liveactivity" else { return .invalidPushType }
        guard request.expiration != nil else { return .badExpirationDate }
        return request.priority == nil ? .badPriority : nil
    }

    /// Returns the reason why the request's payload is rejected; `nil` if it is valid. The content
    /// of a push is not checked: APNs passes it on.
    package func refusalOfPayload(_ request: PushRequest) -> APNsReason? {
        guard request.method == "POST" else { return nil }
        if request.bodyBytes == 0 { return .payloadEmpty }
        let isLong = request.deviceToken == nil || request.pushType == "voip"
        guard request.bodyBytes <= (isLong ? longPayloadBytesMax : payloadBytesMax) else {
            return .payloadTooLarge
        }
        guard request.isManagement, case .failure(let reason) = ChannelPolicy.read(request.body)
        else { return nil }
        return reason
    }

    /// Returns the reason why the topic is rejected; `nil` if it is valid. `allowed` are the topics
    /// of the key or certificate; `nil` for any.
    package func refusalOfTopic(_ request: PushRequest, allowed: Set<String>?) -> APNsReason? {
        if let app = request.channelRoute?.app { return refusal(ofApp: app, allowed: allowed) }
        guard let topic = request.topic else {
            // A certificate with a single topic implies it.
            return allowed?.count == 1 ? nil : .missingTopic
        }
        guard Self.isTopic(topic) else { return .badTopic }
        let suffix = request.pushType.flatMap { Self.topicSuffixes[$0] } ?? ""
        guard topic.hasSuffix(suffix), topic.utf8.count > suffix.utf8.count else {
            return .badTopic
        }
        if let allowed, !allowed.contains(topic) { return .topicDisallowed }
        // Without a push type the topic may be of any type.
        guard let apps, request.pushType != nil, request.pushType != "mdm" else { return nil }
        let app = String(topic.dropLast(suffix.utf8.count))
        return apps.contains(app) ? nil : .topicDisallowed
    }

    /// Returns the reason why the bundle id in the path is rejected; `nil` if it is valid.
    private func refusal(ofApp app: String, allowed: Set<String>?) -> APNsReason? {
        guard Self.isTopic(app), !app.hasSuffix(".push-type.liveactivity"),
            apps?.contains(app) ?? true
        else { return .topicDisallowed }
        if let allowed, !allowed.contains(app) { return .topicMismatch }
        return broadcastApps?.contains(app) ?? true ? nil : .featureNotEnabled
    }

    private static func isHexadecimal(_ text: Substring) -> Bool {
        text.utf8.count.isMultiple(of: 2)
            && text.utf8.allSatisfy {
                (0x30...0x39).contains($0) || (0x61...0x66).contains($0)
                    || (0x41...0x46).contains($0)
            }
    }

    private static func isNumber(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= 19
            && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }

    private static func isTopic(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= 255
            && text.utf8.allSatisfy {
                (0x30...0x39).contains($0) || (0x61...0x7A).contains($0)
                    || (0x41...0x5A).contains($0) || $0 == 0x2D || $0 == 0x2E || $0 == 0x5F
            }
    }
}
