/// What APNs demands of a request's form, whoever sends it and whatever it is sent to.
package struct PushRules: Sendable, Hashable {
    /// Longest payload, in bytes.
    package var payloadBytesMax = 4_096
    /// Longest `apns-collapse-id`, in bytes.
    package var collapseIDBytesMax = 64
    /// The bundle ids of the apps there are; `nil` when any is.
    package var apps: Set<String>?

    /// The rules of APNs.
    package init() {}

    /// What stands behind the bundle id in the topic of each push type that there is.
    package static let topicSuffixes: [String: String] = [
        "alert": "", "background": "", "voip": ".voip", "complication": ".complication",
        "fileprovider": ".pushkit.fileprovider", "location": ".location-query",
        "liveactivity": ".push-type.liveactivity", "pushtotalk": ".voip-ptt",
        "widgets": ".push-type.widgets", "controls": ".push-type.controls",
    ]

    /// The topics an app has.
    package static func topics(ofApp app: String) -> Set<String> {
        Set(topicSuffixes.values.map { app + $0 })
    }

    /// Why the request's method, path or header fields are refused, if they are. The topic is
    /// looked at by ``refusalOfTopic(_:_:)``.
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

    /// Why the request's payload is refused, if it is.
    package func refusalOfPayload(_ request: PushRequest) -> APNsReason? {
        if request.bodyBytes == 0 { return .payloadEmpty }
        return request.bodyBytes > payloadBytesMax ? .payloadTooLarge : nil
    }

    /// Why the topic is refused, if it is.
    ///
    /// - Parameter allowed: The topics that key or certificate may push to; `nil` for any.
    package func refusalOfTopic(_ request: PushRequest, allowed: Set<String>?) -> APNsReason? {
        guard let topic = request.topic else {
            // A certificate of one topic says which.
            return allowed?.count == 1 ? nil : .missingTopic
        }
        guard Self.isTopic(topic) else { return .badTopic }
        let suffix = request.pushType.flatMap { Self.topicSuffixes[$0] } ?? ""
        guard topic.hasSuffix(suffix), topic.utf8.count > suffix.utf8.count else {
            return .badTopic
        }
        if let allowed, !allowed.contains(topic) { return .topicDisallowed }
        // Without a push type the topic may be of any.
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
