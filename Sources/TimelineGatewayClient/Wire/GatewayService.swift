import WidgetModel

/// Sends the gateway's requests for one app, and reads their responses.
package struct GatewayService: Sendable {
    /// The limit of a response other than a poll's, bytes.
    static let answerBytesMax = 1024 * 1024
    /// The limit of a poll's response, bytes: enough for the merged catch-up of a client with the
    /// most widgets.
    static let pollBytesMax = 4 * 1024 * 1024
    /// The limit of an error's body, bytes.
    static let problemBytesMax = 64 * 1024
    /// The longest `Retry-After` that is honored, seconds: one day.
    static let retryAfterSecondsMax = 86_400

    package let connection: any GatewayConnection
    /// The app that the requests concern.
    package let app: String

    package init(connection: any GatewayConnection, app: String) {
        self.connection = connection
        self.app = app
    }

    /// A parsed response with its head.
    package struct Answer<Value: Sendable>: Sendable {
        package let value: Value
        package let head: GatewayResponseHead
    }

    /// The base path of this app.
    package var base: String { "/v1/apps/\(Self.encoded(app))" }

    /// Returns the base path of one of the app's clients.
    package func base(ofClient client: String) -> String {
        "\(base)/clients/\(Self.encoded(client))"
    }

    /// The response to a registration.
    package struct Registered: Sendable {
        /// The cursor at which the registration came into force.
        package let cursor: Cursor
        /// The whole response.
        package let document: JSONValue

        /// The digest of the registration; `nil` from a gateway that sends none.
        package var digest: String? { document.objectValue?["digest"]?.stringValue }

        /// The parts of the registration that the gateway cannot use, such as a kind that is not
        /// in the catalog.
        package var warnings: [Fault] {
            (document.objectValue?["warnings"]?.arrayValue ?? []).compactMap { element in
                if let text = element.stringValue { return Fault("", text) }
                guard let object = element.objectValue, let message = object["message"]?.stringValue
                else { return nil }
                return Fault(object["place"]?.stringValue ?? "", message)
            }
        }
    }

    /// Returns the header field with the digest of the registration that the client expects to be
    /// in force.
    static func headers(registration digest: String?) -> [(name: String, value: String)] {
        digest.map { [(name: "timeline-registration", value: $0)] } ?? []
    }

    /// Reads the registration that is in force.
    package func registration(
        ofClient client: String
    ) async throws(GatewayFailure) -> Answer<RegistrationInForce> {
        let answer = try await json("GET", base(ofClient: client))
        return Answer(value: RegistrationInForce(answer.value), head: answer.head)
    }

    package func register(
        _ registration: ClientRegistration, client: String
    ) async throws(GatewayFailure) -> Answer<Registered> {
        try Self.registered(
            try await json(
                "PUT", base(ofClient: client), body: registration.json(maskingTokens: false)))
    }

    /// Changes members of a client's registration (a merge patch, RFC 7396).
    package func patch(
        _ patch: JSONValue, client: String
    ) async throws(GatewayFailure) -> Answer<Registered> {
        try Self.registered(
            try await json(
                "PATCH", base(ofClient: client), body: patch,
                contentType: "application/merge-patch+json"))
    }

    /// Sends the body of a client's acknowledgement.
    package func acknowledge(
        _ body: JSONValue, client: String, registration: String?
    ) async throws(GatewayFailure) -> GatewayResponseHead {
        try await json(
            "POST", "\(base(ofClient: client))/acks", body: body,
            headers: Self.headers(registration: registration)
        ).head
    }

    private static func registered(
        _ answer: Answer<JSONValue>
    ) throws(GatewayFailure) -> Answer<Registered> {
        guard let text = answer.value.objectValue?["cursor"]?.stringValue,
            let cursor = Cursor(text: text)
        else { throw .unreadable("the response to the registration has no cursor") }
        return Answer(
            value: Registered(cursor: cursor, document: answer.value), head: answer.head)
    }

    /// Sends a JSON document and returns the response's document; `null` for an empty response.
    package func json(
        _ method: String, _ target: String, body: JSONValue? = nil,
        contentType: String = "application/json", headers: [(name: String, value: String)] = []
    ) async throws(GatewayFailure) -> Answer<JSONValue> {
        try await document(
            method, target, body: body?.serialized, contentType: contentType, headers: headers)
    }

    /// Sends bytes and returns the response's document; `null` for an empty response.
    package func document(
        _ method: String, _ target: String, body: [UInt8]?, contentType: String,
        headers: [(name: String, value: String)] = []
    ) async throws(GatewayFailure) -> Answer<JSONValue> {
        var headers = headers
        headers.append((name: "accept", value: "application/json"))
        if body != nil { headers.append((name: "content-type", value: contentType)) }
        let request = GatewayRequest(
            method: method, target: target, headers: headers, body: body,
            responseBytesMax: Self.answerBytesMax)
        let response = try await answer(to: request)
        return Answer(value: try Self.value(of: response), head: response.head)
    }

    /// Sends a request. Throws `refused` for any status other than 2xx.
    package func answer(to request: GatewayRequest) async throws(GatewayFailure) -> GatewayResponse
    {
        let response: GatewayResponse
        do throws(ConnectionError) {
            response = try await connection.send(request)
        } catch {
            throw .connection(error)
        }
        guard (200..<300).contains(response.head.status) else {
            throw .refused(Self.problem(response.head, response.body))
        }
        return response
    }

    static func value(of response: GatewayResponse) throws(GatewayFailure) -> JSONValue {
        guard !response.body.isEmpty else { return .null }
        do throws(JSONFault) {
            return try JSONValue(parsing: response.body)
        } catch {
            throw .unreadable("it is not JSON: \(error)")
        }
    }

    /// Returns the problem that a response describes, or one made from its status.
    package static func problem(_ head: GatewayResponseHead, _ body: [UInt8]) -> ProblemDetails {
        let value = (try? JSONValue(parsing: body)) ?? .null
        var problem =
            ProblemDetails(value, status: head.status)
            ?? ProblemDetails(
                status: head.status, code: "about:blank",
                title: "The response has status \(head.status) and no problem document")
        if let field = head["retry-after"], let seconds = Int(field), seconds >= 0 {
            problem.retryAfter = seconds
        }
        problem.retryAfter = problem.retryAfter.map { min(max(0, $0), retryAfterSecondsMax) }
        return problem
    }

    /// Percent-encodes everything but the unreserved characters (RFC 3986 section 2.3).
    package static func encoded(_ text: String) -> String {
        var encoded: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "_"), UInt8(ascii: "~"):
                encoded.append(byte)
            default:
                let hex = Array("0123456789ABCDEF".utf8)
                encoded += [UInt8(ascii: "%"), hex[Int(byte >> 4)], hex[Int(byte & 15)]]
            }
        }
        return String(decoding: encoded, as: UTF8.self)
    }
}
