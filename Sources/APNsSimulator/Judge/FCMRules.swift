import GatewaySigning
import WidgetModel

/// A sender that FCM knows: a service account of a project.
package struct FCMSender: Sendable {
    package let project: String
    package let email: String
    package let keyID: String
    package let key: VerificationKey

    package init(project: String, email: String, keyID: String, key: VerificationKey) {
        (self.project, self.email, self.keyID, self.key) = (project, email, keyID, key)
    }

    /// Returns the key file that the Firebase console would issue.
    ///
    /// - Parameter url: The URL of the simulated service.
    package func document(_ key: ServiceAccountKey, url: String) throws(SigningError) -> JSONValue {
        [
            "type": "service_account", "project_id": .string(project),
            "client_email": .string(email), "private_key_id": .string(keyID),
            "private_key": .string(String(decoding: try key.pem(), as: UTF8.self)),
            "token_uri": .string(url + PushRequest.tokenPath),
        ]
    }
}

/// The requirements of FCM (HTTP v1) and of Google's token endpoint on requests.
struct FCMRules: Sendable {
    /// FCM's error codes, with their status and general name.
    static let codes: [String: (status: Int, name: String)] = [
        "INTERNAL": (500, "INTERNAL"), "INVALID_ARGUMENT": (400, "INVALID_ARGUMENT"),
        "QUOTA_EXCEEDED": (429, "RESOURCE_EXHAUSTED"),
        "SENDER_ID_MISMATCH": (403, "PERMISSION_DENIED"),
        "THIRD_PARTY_AUTH_ERROR": (401, "UNAUTHENTICATED"),
        "UNAVAILABLE": (503, "UNAVAILABLE"), "UNREGISTERED": (404, "NOT_FOUND"),
    ]
    /// The field of a request that names the device.
    static let tokenField = "message.token"
    private static let scope = "https://www.googleapis.com/auth/firebase.messaging"
    private static let grant = "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer"
    /// The longest data, bytes: keys and values.
    private static let dataBytesMax = 4_096
    private static let lifetime: Int64 = 3_600
    private static let lifetimeMax = 2_419_200

    private struct Fault: Error {
        var answer: PushAnswer
        /// The rule that is broken; `nil` for a token that has only expired.
        let text: String?

        init(_ status: Int, _ name: String, _ text: String?) {
            answer = FCMRules.answer(status, name, code: nil)
            self.text = text
        }
    }

    private let senders: [FCMSender]
    /// The valid tokens: project and end.
    private var tokens: [String: (project: String, until: Int64)] = [:]
    /// The number of tokens issued.
    private(set) var issued = 0

    init(_ senders: [FCMSender]) { self.senders = senders }

    /// Returns an error of Google's services, with a code of FCM's own if it has one, and the field
    /// of the request that is invalid.
    static func answer(
        _ status: Int, _ name: String, code: String?, invalid field: String? = nil
    ) -> PushAnswer {
        var answer = PushAnswer(status: status, reason: code ?? name)
        answer.invalidField = field
        let type = "type.googleapis.com/google."
        var details: [JSONValue] = []
        if let code {
            details.append(
                [
                    "@type": .string(type + "firebase.fcm.v1.FcmError"), "errorCode": .string(code),
                ])
        }
        var error: JSONObject = ["code": .integer(Int64(status)), "status": .string(name)]
        if let field {
            let text: JSONValue =
                field == tokenField
                ? "The registration token is not a valid FCM registration token"
                : "Request contains an invalid argument."
            error["message"] = text
            details.append(
                [
                    "@type": .string(type + "rpc.BadRequest"),
                    "fieldViolations": [["field": .string(field), "description": text]],
                ])
        }
        if !details.isEmpty { error["details"] = .array(details) }
        answer.document = ["error": .object(error)]
        return answer
    }

    /// Returns the response to a request for a token, or to an invalid push; `nil` for a valid push.
    mutating func answer(
        to request: PushRequest, wall: Int64
    ) -> (answer: PushAnswer, fault: String?)? {
        do throws(Fault) {
            guard request.method == "POST" else {
                throw Fault(405, "METHOD_NOT_ALLOWED", "the method is not POST")
            }
            if request.path == PushRequest.tokenPath { return (try token(request, wall), nil) }
            try checkSender(request, wall: wall)
            try checkMessage(request)
            return nil
        } catch {
            return (error.answer, error.text)
        }
    }

    private mutating func token(_ request: PushRequest, _ wall: Int64) throws(Fault) -> PushAnswer {
        func invalid(_ text: String) -> Fault {
            var fault = Fault(400, "invalid_grant", text)
            fault.answer.document = ["error": "invalid_grant"]
            return fault
        }
        var form: [Substring: Substring] = [:]
        let text = String(decoding: request.body, as: UTF8.self)
        for part in text.split(separator: "&") {
            let pair = part.split(separator: "=", maxSplits: 1)
            if pair.count == 2 { form[pair[0]] = pair[1] }
        }
        guard request.values["content-type"] == "application/x-www-form-urlencoded",
            form["grant_type"] == Self.grant[...], let assertion = form["assertion"]
        else { throw invalid("it is no form with a grant") }
        let words = assertion.split(separator: ".", omittingEmptySubsequences: false)
        guard words.count == 3, let header = Self.object(words[0]),
            let claims = Self.object(words[1]), let signature = Base64.url.decode(words[2].utf8),
            header["alg"] == "RS256",
            let sender = senders.first(where: { $0.keyID == header["kid"]?.stringValue }),
            sender.key.verify(signature, over: Array("\(words[0]).\(words[1])".utf8))
        else { throw invalid("the assertion is not signed by a known key") }
        guard let issuedAt = claims["iat"]?.integerValue, let end = claims["exp"]?.integerValue,
            issuedAt <= wall + 60, end > wall, end - issuedAt <= 3_600
        else { throw invalid("the assertion is not valid now, or for more than an hour") }
        guard claims["iss"]?.stringValue == sender.email,
            claims["scope"]?.stringValue == Self.scope,
            claims["aud"]?.stringValue == "https://" + request.authority + request.path
        else { throw invalid("the assertion is for something else") }
        issued += 1
        let name = "access-\(issued)-\(FaultDraw.mixed(UInt64(issued)))"
        tokens[name] = (sender.project, wall + Self.lifetime)
        var answer = PushAnswer(status: 200)
        answer.document = [
            "access_token": .string(name), "expires_in": .integer(Self.lifetime),
            "token_type": "Bearer",
        ]
        return answer
    }

    private static func object(_ text: Substring) -> JSONObject? {
        Base64.url.decode(text.utf8).flatMap { try? JSONValue(parsing: $0).objectValue }
    }

    private func checkSender(_ request: PushRequest, wall: Int64) throws(Fault) {
        let words = (request.authorization ?? "").split(separator: " ")
        guard words.count == 2, words[0] == "Bearer", let token = tokens[String(words[1])] else {
            throw Fault(401, "UNAUTHENTICATED", "the access token is unknown")
        }
        guard token.until > wall else { throw Fault(401, "UNAUTHENTICATED", nil) }
        guard request.path == "/v1/projects/\(token.project)/messages:send" else {
            throw Fault(404, "NOT_FOUND", "the path is not that of the token's project")
        }
    }

    private func checkMessage(_ request: PushRequest) throws(Fault) {
        func invalid(_ text: String) -> Fault { Fault(400, "INVALID_ARGUMENT", text) }
        guard request.values["content-type"] == "application/json",
            let body = try? JSONValue(parsing: request.body).objectValue,
            let message = body["message"]?.objectValue, body.members.count == 1
        else { throw invalid("the body is no message") }
        guard message["token"]?.stringValue?.isEmpty == false,
            let data = message["data"]?.objectValue,
            data.members.allSatisfy({ $0.value.stringValue != nil })
        else { throw invalid("there is no token, or the data is no object of texts") }
        let isReserved = data.members.contains {
            ["from", "message_type"].contains($0.name) || $0.name.hasPrefix("google")
                || $0.name.hasPrefix("gcm")
        }
        let bytes = data.members.reduce(0) {
            $0 + $1.name.utf8.count + ($1.value.stringValue?.utf8.count ?? 0)
        }
        guard !isReserved, bytes <= Self.dataBytesMax else {
            throw invalid("the data is too long, or has a key of FCM's own")
        }
        let android = message["android"]?.objectValue
        let ttl = android?["ttl"]?.stringValue ?? "0s"
        guard ttl.hasSuffix("s"), let seconds = Int(ttl.dropLast()),
            (0...Self.lifetimeMax).contains(seconds)
        else { throw invalid("ttl is no duration of at most four weeks") }
        guard ["HIGH", "NORMAL"].contains(android?["priority"]?.stringValue ?? "NORMAL"),
            android?["collapse_key"] == nil || android?["collapse_key"]?.stringValue != nil
        else { throw invalid("the priority or the collapse key is invalid") }
    }
}
