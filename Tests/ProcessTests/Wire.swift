import GatewayTestSupport
import WidgetModel

/// The claims of a compact JWS, unverified.
func claims(of jws: String) throws -> ReloadNotification {
    let parts = jws.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3 else { throw WireFault(what: "not a compact JWS: \(jws)") }
    return try ReloadNotification(JSONValue(parsing: base64URLDecoded(parts[1])))
}

/// Decodes base64url without padding (RFC 4648 section 5); other characters are skipped.
func base64URLDecoded(_ text: some StringProtocol) -> [UInt8] {
    var bytes: [UInt8] = []
    var (bits, count) = (0, 0)
    for character in text.utf8 {
        let digit = digits[Int(character)]
        if digit < 0 { continue }
        (bits, count) = ((bits << 6 | digit) & 0xFFFF, count + 6)
        if count >= 8 {
            count -= 8
            bytes.append(UInt8(bits >> count & 0xFF))
        }
    }
    return bytes
}

private let digits: [Int] = {
    var digits = [Int](repeating: -1, count: 256)
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for (digit, character) in alphabet.utf8.enumerated() { digits[Int(character)] = digit }
    return digits
}()

/// Something on the wire is not what it has to be.
struct WireFault: Error, CustomStringConvertible {
    let what: String
    var description: String { what }
}

/// An answer that a poll gave.
struct PollAnswer {
    let cursor: String
    let notifications: [String]

    init(_ answer: TestHTTPAnswer) throws {
        guard answer.status == 200, let cursor = answer["cursor"]?.stringValue,
            let list = answer["notifications"]?.arrayValue
        else { throw WireFault(what: "a poll was answered \(answer.status): \(answer.text)") }
        self.cursor = cursor
        notifications = list.compactMap(\.stringValue)
    }
}

extension Cursor {
    /// Where a cursor's text stands.
    static func sequence(_ text: String?) throws -> UInt64 {
        guard let text, let cursor = Cursor(text: text) else {
            throw WireFault(what: "not a cursor: \(text ?? "none")")
        }
        return cursor.sequence
    }
}

/// One event in the JSON event format.
func event(source: String, id: String, entity: String, key: String) -> JSONValue {
    [
        "specversion": "1.0", "type": "test.changed", "source": .string(source), "id": .string(id),
        "data": ["entity": .string(entity), "id": .string(key)],
    ]
}

extension TestHTTP {
    /// Posts events, one alone or several as a batch.
    func post(_ events: [JSONValue], app: String, token: String) throws -> TestHTTPAnswer {
        let type = events.count == 1 ? "cloudevents" : "cloudevents-batch"
        let body = events.count == 1 ? events[0] : .array(events)
        return try request(
            "POST", "/v1/apps/\(app)/changes", token: token,
            headers: [("Content-Type", "application/\(type)+json")], body: body.text)
    }

    /// Registers a client.
    func register(
        _ client: String, app: String, token: String, _ document: JSONValue
    ) throws -> TestHTTPAnswer {
        try request(
            "PUT", "/v1/apps/\(app)/clients/\(client)", token: token, body: document.text)
    }

    /// Asks what is stale for a client.
    func poll(
        _ client: String, app: String, token: String, since cursor: String?
    ) throws -> PollAnswer {
        try PollAnswer(
            request(
                "GET", "/v1/apps/\(app)/clients/\(client)/reloads", token: token,
                headers: cursor.map { [("Last-Event-ID", $0)] } ?? []))
    }
}
