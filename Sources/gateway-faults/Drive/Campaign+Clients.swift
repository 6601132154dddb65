import GatewayTestSupport
import WidgetModel

/// The clients' side: streams and polls.
extension Campaign {
    /// Holds a client's streams, one after the other, until listening stops.
    func hold(
        _ client: FaultClient, _ version: TestHTTPVersion, _ generator: inout SplitMix64
    ) {
        while isListening {
            let opened = recorder.now
            let stream = gateway.stream(
                app: Game.app, client: client.name, token: client.token, from: client.cursor,
                version: version)
            let isCut = generator.happens(load.cutPercent)
            if isCut { stream.cut(atByte: generator.below(6_000)) }
            read(stream, client, opened: opened)
            stream.close()
            pause(seconds: Double(generator.below(40)) / 1000)
        }
    }

    /// Reads a stream until it ends or listening stops.
    private func read(_ stream: TestHTTPStream, _ client: FaultClient, opened: Double) {
        while isListening {
            switch stream.next(timeout: 0.1) {
            case .block(let block): take(block, client, opened: opened)
            case .ended:
                if let head = stream.head(seconds: 0) { judge(head, client) }
                return
            case nil: continue
            }
        }
    }

    /// Takes a block as a client does: the notification first, then the cursor.
    func take(_ block: ServerSentEvent, _ client: FaultClient, opened: Double) {
        if let data = block.data { hear(data, client, opened: opened) }
        if let id = block.id { adopt(id, client) }
    }

    /// Polls from a client's cursor until listening stops.
    func poll(
        _ client: FaultClient, _ version: TestHTTPVersion, _ generator: inout SplitMix64
    ) {
        keepTrying(while: { isListening }, version: version) { http in
            try poll(client, http)
            pause(seconds: Double(generator.below(80)) / 1000)
        }
    }

    /// Polls once. Throws unless the answer is 200.
    func poll(_ client: FaultClient, _ http: TestHTTP) throws {
        let opened = recorder.now
        let answer = try http.request(
            "GET", client.path + "/reloads", token: client.token,
            headers: [("Last-Event-ID", client.cursor)])
        judge(answer, client)
        let polled = try PollAnswer(answer)
        for notification in polled.notifications { hear(notification, client, opened: opened) }
        adopt(polled.cursor, client)
    }

    /// A stream or poll is answered 200, or the gateway has to say that it is busy.
    private func judge(_ head: TestHTTPAnswer, _ client: FaultClient) {
        recorder.require(
            head.status == 0 || head.status == 200
                || load.allowedStatuses.contains(head.status),
            "\(client.name) got status \(head.status): \(head.text.prefix(200))")
    }

    private func hear(_ text: String, _ client: FaultClient, opened: Double) {
        signatures.check(text, of: client.name, fetch: publishedKeys)
        guard let notification = try? claims(of: text) else {
            recorder.add(.unverifiable(client: client.name, reason: "unreadable: \(text)"))
            return
        }
        recorder.add(.told(client: client.name, Game.telling(notification, opened: opened)))
    }

    private func adopt(_ text: String, _ client: FaultClient) {
        guard let sequence = try? Cursor.sequence(text) else {
            recorder.require(false, "\(client.name) got the malformed cursor \(text)")
            return
        }
        recorder.add(.watermark(client: client.name, sequence: sequence))
        client.state.update { ($0.cursor, $0.watermark) = (text, sequence) }
    }
}
