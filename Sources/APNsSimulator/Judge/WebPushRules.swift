import GatewaySigning
import WidgetModel

/// The requirements on pushes to browsers, independent of the browser.
struct WebPushRules: Sendable {
    /// The reason why a push is rejected.
    struct Fault: Error, Hashable {
        let status: Int
        /// The rule that is broken; `nil` for a subscription that belongs to another key.
        let text: String?

        init(_ status: Int, _ text: String?) {
            (self.status, self.text) = (status, text)
        }
    }

    /// The number of verified tokens after which they are forgotten.
    private static let verifiedMax = 10_000
    private static let urgencies: Set = ["very-low", "low", "normal", "high"]
    private static let bodyBytesMax = 4_096

    /// A token that identifies a sender.
    private struct Token {
        let key: Substring
        let audience: String
        let expires: Int64
    }

    /// The tokens with valid signatures, by the field that they came in.
    private var verified: [String: Token] = [:]
    /// The keys of subscriptions, by path: a subscription belongs to the first key that pushes to
    /// it.
    private var keys: [String: Substring] = [:]

    /// Returns why a push is rejected; `nil` if it is valid. `wall` is in seconds since 1970.
    mutating func fault(of request: PushRequest, wall: Int64) -> Fault? {
        do throws(Fault) {
            try checkFields(request)
            try checkSender(request, wall: wall)
            try checkBody(request)
            return nil
        } catch {
            return error
        }
    }

    private func checkFields(_ request: PushRequest) throws(Fault) {
        guard request.method == "POST" else { throw Fault(405, "the method is not POST") }
        guard request.isToBrowser, request.deviceToken?.isEmpty == false else {
            throw Fault(404, "the path is no subscription")
        }
        let fields = request.values
        let isTime = fields["ttl"].flatMap { UInt32($0) } != nil
        guard isTime else { throw Fault(400, "TTL is missing or no number") }
        guard Self.urgencies.contains(fields["urgency"] ?? "normal") else {
            throw Fault(400, "the urgency is unknown")
        }
        if let topic = fields["topic"] {
            let isPlain = topic.utf8.allSatisfy {
                $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_")
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
                    || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0 | 0x20)
            }
            guard isPlain, (1...32).contains(topic.utf8.count) else {
                throw Fault(400, "the topic is not of up to 32 base64url characters")
            }
        }
    }

    /// Checks the token that identifies the sender (RFC 8292).
    private mutating func checkSender(_ request: PushRequest, wall: Int64) throws(Fault) {
        guard let field = request.authorization else {
            throw Fault(401, "no token identifies the sender")
        }
        guard let known = verified[field] ?? Self.token(field) else {
            throw Fault(403, "the token is not signed by its key")
        }
        if verified.count >= Self.verifiedMax { verified = [:] }
        verified[field] = known
        guard known.audience == "https://" + request.authority else {
            throw Fault(403, "the token is for another service")
        }
        guard known.expires > wall, known.expires <= wall + 86_400 else {
            throw Fault(403, "the token has expired, or is valid for more than a day")
        }
        guard keys[request.path] ?? known.key == known.key else { throw Fault(403, nil) }
        if keys.count < PushRecord.devicesMax { keys[request.path] = known.key }
    }

    private static func token(_ field: String) -> Token? {
        guard field.hasPrefix("vapid ") else { return nil }
        var parts: [Substring: Substring] = [:]
        for part in field.dropFirst(6).split(separator: ",") {
            let pair = part.drop { $0 == " " }.split(separator: "=", maxSplits: 1)
            if pair.count == 2 { parts[pair[0]] = pair[1] }
        }
        guard let token = parts["t"], let text = parts["k"],
            let point = Base64.url.decode(text.utf8), point.count == 65, point[0] == 4
        else { return nil }
        let (x, y) = (Array(point[1...32]), Array(point[33...]))
        let jwk: JSONObject = [
            "kty": "EC", "crv": "P-256", "x": .string(Base64.url.string(x)),
            "y": .string(Base64.url.string(y)),
        ]
        let words = token.split(separator: ".", omittingEmptySubsequences: false)
        guard words.count == 3, let signature = Base64.url.decode(words[2].utf8),
            let key = try? VerificationKey(jwk: jwk),
            key.verify(signature, over: Array("\(words[0]).\(words[1])".utf8)),
            let payload = Base64.url.decode(words[1].utf8),
            let claims = try? JSONValue(parsing: payload).objectValue,
            let audience = claims["aud"]?.stringValue, let expires = claims["exp"]?.integerValue,
            claims["sub"]?.stringValue?.isEmpty == false
        else { return nil }
        return Token(key: text, audience: audience, expires: expires)
    }

    /// Checks that the body is empty, or one record that a browser could decrypt.
    private func checkBody(_ request: PushRequest) throws(Fault) {
        guard request.bodyBytes <= Self.bodyBytesMax else {
            throw Fault(413, "the body is too long")
        }
        let coding = request.values["content-encoding"]
        guard request.bodyBytes > 0 else {
            if coding != nil { throw Fault(400, "nothing is encrypted") }
            return
        }
        guard coding == "aes128gcm" else { throw Fault(400, "the content coding is unknown") }
        let body = request.body
        // A salt, the record size, the sender's point, and at least a delimiter and a tag.
        guard body.count >= 86 + 17, body[20] == 65, body[21] == 4 else {
            throw Fault(400, "the body has no header of RFC 8291")
        }
        let recordBytes = body[16..<20].reduce(0) { $0 << 8 | Int($1) }
        guard body.count - 86 <= recordBytes else {
            throw Fault(400, "there is more than a record")
        }
    }
}
