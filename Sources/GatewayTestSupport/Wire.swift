import WidgetModel

/// The claims of a compact JWS, unverified.
package func claims(of jws: String) throws -> ReloadNotification {
    let parts = jws.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, let payload = Base64.url.decode(parts[1].utf8) else {
        throw TestFailure("not a compact JWS: \(jws)")
    }
    return try ReloadNotification(JSONValue(parsing: payload))
}

package struct PollAnswer {
    /// The cursor to poll from next.
    package let cursor: String
    /// Compact JWS, unverified.
    package let notifications: [String]

    /// Reads the answer to a poll. Throws ``TestFailure`` for any other.
    package init(_ answer: TestHTTPAnswer) throws {
        guard answer.status == 200, let cursor = answer["cursor"]?.stringValue,
            let list = answer["notifications"]?.arrayValue
        else { throw TestFailure("a poll was answered \(answer.status): \(answer.text)") }
        self.cursor = cursor
        notifications = list.compactMap(\.stringValue)
    }
}

extension Cursor {
    /// Where a cursor's text stands.
    package static func sequence(_ text: String?) throws -> UInt64 {
        guard let text, let cursor = Cursor(text: text) else {
            throw TestFailure("not a cursor: \(text ?? "none")")
        }
        return cursor.sequence
    }
}

package func event(source: String, id: String, entity: String, key: String) -> JSONValue {
    [
        "specversion": "1.0", "type": "test.changed", "source": .string(source), "id": .string(id),
        "data": ["entity": .string(entity), "id": .string(key)],
    ]
}

/// A registration with a widget of the kind `detail` for each of `characters`.
package func registration(
    showing characters: [String], platform: String = "iOS", delivery: [JSONValue] = []
) -> JSONValue {
    var document: JSONObject = [
        "platform": .string(platform),
        "widgets": .array(
            characters.map {
                [
                    "kind": "detail", "family": "systemSmall",
                    "parameters": ["character": .string($0)],
                ]
            }),
    ]
    if !delivery.isEmpty { document["delivery"] = .array(delivery) }
    return .object(document)
}

/// The addresses of a client: its streams and, with a push token, its widgets.
package func addresses(pushToken: String?) -> [JSONValue] {
    let stream: JSONValue = ["type": "stream"]
    guard let pushToken else { return [stream] }
    let widgets: JSONValue = [
        "type": "apns", "pushType": "widgets", "token": .string(pushToken),
        "environment": "production",
    ]
    return [stream, widgets]
}

extension TestHTTP {
    /// Puts a catalog, as YAML, in force. Throws ``TestFailure`` when it is refused.
    package func putCatalog(_ catalog: String, app: String, token: String) throws {
        let answer = try request(
            "PUT", "/v1/apps/\(app)/catalog", token: token,
            headers: [("Content-Type", "application/yaml")], body: catalog)
        guard answer.status == 201 || answer.status == 200 else {
            throw TestFailure("the catalog is refused: \(answer.text)")
        }
    }

    /// Posts events, one alone or several as a batch.
    package func post(_ events: [JSONValue], app: String, token: String) throws -> TestHTTPAnswer {
        let type = events.count == 1 ? "cloudevents" : "cloudevents-batch"
        let body = events.count == 1 ? events[0] : .array(events)
        return try request(
            "POST", "/v1/apps/\(app)/changes", token: token,
            headers: [("Content-Type", "application/\(type)+json")], body: body.text)
    }

    package func register(
        _ client: String, app: String, token: String, _ document: JSONValue
    ) throws -> TestHTTPAnswer {
        try request(
            "PUT", "/v1/apps/\(app)/clients/\(client)", token: token, body: document.text)
    }

    /// Asks what is stale for a client.
    package func poll(
        _ client: String, app: String, token: String, since cursor: String?
    ) throws -> PollAnswer {
        try PollAnswer(
            request(
                "GET", "/v1/apps/\(app)/clients/\(client)/reloads", token: token,
                headers: cursor.map { [("Last-Event-ID", $0)] } ?? []))
    }

    /// Returns what the gateway says of a client.
    package func explained(_ client: String, app: String, token: String) throws -> JSONObject {
        let answer = try request("GET", "/v1/apps/\(app)/clients/\(client)/explain", token: token)
        guard answer.status == 200, let object = answer.json?.objectValue else {
            throw TestFailure(answer.text)
        }
        return object
    }
}

/// Blocks this thread for a moment: a fault comes at a time, not after a condition.
package func pause(seconds: Double) {
    _ = TestHTTPMonitor(()).wait(seconds: seconds) { _ -> Bool? in nil }
}
