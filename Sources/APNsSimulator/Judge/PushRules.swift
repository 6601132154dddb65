/// APNs' requirements on the form of a request, independent of its sender and device.
package struct PushRules: Sendable, Hashable {
    /// The longest payload, bytes.
    package var payloadBytesMax = 4_096
    /// The longest `apns-collapse-id`, bytes.
    package var collapseIDBytesMax = 64
    /// The bundle ids of existing apps; `nil` for any.
    package var apps: Set<String>?

    package init() {}

    /// The suffix of the topic after the bundle id, for each known push type.
    package static let topicSuffixes: [String: String] = [
        "alert": "", "background": "", "voip": ".voip", "complication": ".complication",
        "fileprovider": ".pushkit.fileprovider", "location": ".location-query",
        "liveactivity": ".push-type.liveactivity", "pushtotalk": ".voip-ptt",
        "widgets": ".push-type.widgets", "controls": ".push-type.controls",
    ]

    package static func topics(ofApp app: String) -> Set<String> {
        Set(topicSuffixes.values.map { app + $0 })
    }

    /// Returns the reason why the request's method, path or header fields are rejected; `nil` if
    /// they are valid. ``refusalOfTopic(_:_:)`` checks the topic.
    package func refusalOfFields(_ request: PushRequest) -> APNsReason? {
        guard request.method == "POST" else { return .methodNotAllowed }
        guard let token = request.deviceToken else { return .badPath }
        guard !request.isFieldRepeated else { return .duplicateHeaders }
        guard !token.isEmpty else { return .missingDeviceToken }
        guard Self.isHexadecimal(token) else { return .badDeviceToken }
        if let id = request.id, PushID(id) == nil { return .badMessageID }
        if let type = request.pushType, type != "mdm", Self.topicSuffixes[type] == nil {
            return .invalidPushType
        }
        if let expiration = request.expiration, !Self.isNumber(expiration) {
            return .badExpirationDate
        }
        switch request.priority {
        case nil where request.pushType == "background": return .badPriority
        case "5", nil: break
        case "1", "10": if request.pushType == "background" { return .badPriority }
        default: return .badPriority
        }
        if let collapseID = request.collapseID, collapseID.utf8.count > collapseIDBytesMax {
            return .badCollapseID
        }
        return nil
    }

    /// Returns the reason why the request's payload is rejected; `nil` if it is valid.
    package func refusalOfPayload(_ request: PushRequest) -> APNsReason? {
        if request.bodyBytes == 0 { return .payloadEmpty }
        return request.bodyBytes > payloadBytesMax ? .payloadTooLarge : nil
    }

    /// Returns the reason why the topic is rejected; `nil` if it is valid.
    ///
    /// - Parameter allowed: The topics allowed for the key or certificate; `nil` for any.
    package func refusalOfTopic(_ request: PushRequest, allowed: Set<String>?) -> APNsReason? {
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
