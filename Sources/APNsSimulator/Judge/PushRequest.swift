import WidgetModel

/// A request with the fields that APNs evaluates.
package struct PushRequest: Sendable, Hashable {
    /// The pseudo-header `:method`.
    package var method = ""
    /// The pseudo-header `:path`.
    package var path = ""
    /// The field `authorization`.
    package var authorization: String?
    /// The field `apns-push-type`.
    package var pushType: String?
    /// The field `apns-topic`.
    package var topic: String?
    /// The field `apns-id`.
    package var id: String?
    /// The field `apns-expiration`.
    package var expiration: String?
    /// The field `apns-priority`.
    package var priority: String?
    /// The field `apns-collapse-id`.
    package var collapseID: String?
    /// The field `apns-channel-id`.
    package var channelID: String?
    /// The field `apns-request-id`, which replaces `apns-id` in requests about channels.
    package var requestID: String?
    /// The pseudo-header `:authority`.
    package var authority = ""
    /// The fields that other services than APNs evaluate, by name.
    package var values: [String: String] = [:]
    /// Whether one of these fields occurred twice.
    package var isFieldRepeated = false
    /// The names of other fields, up to ``otherFieldsMax``, which APNs ignores.
    package var otherFields: [String] = []
    /// The length of the body, bytes.
    package var bodyBytes = 0
    /// The stored part of the body.
    package var body: [UInt8] = []

    /// The path of every push to a device, before its token.
    package static let devicePath = "/3/device/"
    /// The path of every push to a browser, before the id of its subscription.
    package static let subscriptionPath = "/push/"
    /// The path of requests for access tokens of FCM.
    package static let tokenPath = "/token"
    private static let valueNames: Set = [
        "ttl", "urgency", "topic", "content-encoding", "content-type",
    ]

    package init() {}

    /// The device token, or the id of the subscription, in the path; `nil` for a path of another
    /// form.
    package var deviceToken: Substring? {
        let prefix = isToBrowser ? Self.subscriptionPath : Self.devicePath
        guard path.hasPrefix(prefix) else { return nil }
        let token = path.dropFirst(prefix.utf8.count)
        return token.utf8.contains(UInt8(ascii: "/")) ? nil : token
    }

    /// The purposes of requests about channels.
    package enum ChannelRoute: Sendable {
        case push, manage, list
    }

    /// The purpose of a request about channels and the app that its path names; `nil` for another
    /// request.
    package var channelRoute: (route: ChannelRoute, app: String)? {
        guard deviceToken == nil else { return nil }
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 5, parts[0].isEmpty else { return nil }
        switch (parts[1], parts[2], parts[3], parts[4]) {
        case ("4", "broadcasts", "apps", let app): return (ChannelRoute.push, String(app))
        case ("1", "apps", let app, "channels"): return (ChannelRoute.manage, String(app))
        case ("1", "apps", let app, "all-channels"): return (ChannelRoute.list, String(app))
        default: return nil
        }
    }

    /// Whether the request manages or lists channels, or asks for an access token. Every other
    /// request is a push.
    package var isManagement: Bool {
        path == Self.tokenPath || channelRoute.map { $0.route != .push } ?? false
    }

    /// The registration token in the body of a push through FCM.
    package var registrationToken: String? {
        let message = (try? JSONValue(parsing: body).objectValue)?["message"]
        return message?.objectValue?["token"]?.stringValue
    }

    /// Whether it is a push to a browser.
    var isToBrowser: Bool { path.hasPrefix(Self.subscriptionPath) }

    /// The name of the field with the request's id.
    var idField: String {
        isToBrowser ? "location" : deviceToken == nil ? "apns-request-id" : "apns-id"
    }
    /// The value of that field.
    var idText: String? { deviceToken == nil ? requestID : id }

    /// The maximum number of stored names of other fields.
    package static let otherFieldsMax = 32

    /// Adds a header field; only the name of an unknown one is stored.
    package mutating func take(_ name: String, _ value: String) {
        switch name {
        case ":method": method = value
        case ":path": path = value
        case ":authority": authority = value
        case "authorization": set(\.authorization, value)
        case "apns-push-type": set(\.pushType, value)
        case "apns-topic": set(\.topic, value)
        case "apns-id": set(\.id, value)
        case "apns-expiration": set(\.expiration, value)
        case "apns-priority": set(\.priority, value)
        case "apns-collapse-id": set(\.collapseID, value)
        case "apns-channel-id": set(\.channelID, value)
        case "apns-request-id": set(\.requestID, value)
        case _ where Self.valueNames.contains(name): values[name] = value
        default: if otherFields.count < Self.otherFieldsMax { otherFields.append(name) }
        }
    }

    /// Adds a piece of the body; at most `bytesMax` bytes are stored in total.
    package mutating func take(body piece: some Collection<UInt8>, bytesMax: Int) {
        bodyBytes += piece.count
        body.append(contentsOf: piece.prefix(max(0, bytesMax - body.count)))
    }

    private mutating func set(_ field: WritableKeyPath<PushRequest, String?>, _ value: String) {
        if self[keyPath: field] != nil { isFieldRepeated = true }
        self[keyPath: field] = value
    }
}

/// The identity of a push (`apns-id`), as a number of 128 bits.
package struct PushID: Sendable, Hashable {
    private let high: UInt64
    private let low: UInt64

    /// Parses the only allowed form: lower-case hexadecimal, 8-4-4-4-12.
    package init?(_ text: String) {
        var text = text
        let parsed = text.withUTF8 { letters -> (UInt64, UInt64)? in
            guard letters.count == 36 else { return nil }
            var (high, low): (UInt64, UInt64) = (0, 0)
            for (place, letter) in letters.enumerated() {
                switch (place, letter) {
                case (8, 0x2D), (13, 0x2D), (18, 0x2D), (23, 0x2D): continue
                case (8, _), (13, _), (18, _), (23, _): return nil
                default: break
                }
                let digit: UInt8
                switch letter {
                case 0x30...0x39: digit = letter - 0x30
                case 0x61...0x66: digit = letter - 0x61 + 10
                default: return nil
                }
                high = high << 4 | low >> 60
                low = low << 4 | UInt64(digit)
            }
            return (high, low)
        }
        guard let parsed else { return nil }
        (high, low) = parsed
    }

    /// Creates an id for a push that has none, in the form of a UUID of version 4.
    init(random high: UInt64, _ low: UInt64) {
        self.high = high & ~0xF000 | 0x4000
        self.low = low & ~(0xC0 << 56) | 0x80 << 56
    }

    /// Another id that is derived from this one.
    var other: PushID {
        PushID(random: FaultDraw.mixed(high), FaultDraw.mixed(low))
    }

    /// The form of the header field.
    package var text: String {
        String(unsafeUninitializedCapacity: 36) { letters in
            // Sound: 32 digits and 4 dashes are written, which matches the capacity.
            var place = 0
            for index in 0..<32 {
                if index == 8 || index == 12 || index == 16 || index == 20 {
                    letters[place] = 0x2D
                    place += 1
                }
                let word = index < 16 ? high : low
                let digit = UInt8(word >> UInt64(60 - index % 16 * 4) & 0xF)
                letters[place] = digit < 10 ? 0x30 + digit : 0x61 + digit - 10
                place += 1
            }
            return 36
        }
    }
}
