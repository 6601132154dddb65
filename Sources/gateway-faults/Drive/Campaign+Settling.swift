import GatewayTestSupport
import WidgetModel

/// The end of a run: everything that is open is closed, so that the judge can tell what is missing.
extension Campaign {
    /// Stops all changes, sends again whatever had no answer, waits until every open stream has
    /// come as far as the log, and polls once for every client.
    func settle() throws {
        stage.update { $0.isChanging = false }
        try postOpenBatches()
        try registerUnsureClients()
        try repeatAcceptedBatches()
        if stage.update({ $0.hasListeners }) { try awaitStreams() }
        stop()
        for client in clients { try finalPoll(client) }
        for client in newClients where !client.cursor.isEmpty { try finalPoll(client) }
        signatures.finish(fetch: publishedKeys) { client, reason in
            recorder.add(.unverifiable(client: client, reason: reason))
        }
    }

    /// Ends all clients and backends; also after a run that could not be finished.
    func stop() {
        stage.update { ($0.isChanging, $0.isListening) = (false, false) }
        recorder.require(
            stage.wait(seconds: Patience.seconds) { $0.threads == 0 ? true : nil } == true,
            "a client or backend is still waiting for a response")
    }

    /// Sends every batch without a 202 again.
    func postOpenBatches() throws {
        // Posters may still be at their last batch: they leave it open, or not.
        pause(seconds: 0.1)
        for (batch, subjects) in stage.update({ $0.open.sorted { $0.key < $1.key } }) {
            _ = try postUntilAccepted(batch, subjects)
        }
    }

    func registerUnsureClients() throws {
        for client in clients {
            let deadline = recorder.now + 20
            while client.state.update({ $0.isUnsure }) {
                try? register(
                    client, client.placement, gateway.http(timeoutSeconds: Self.requestTimeout))
                guard recorder.now < deadline else {
                    throw TestFailure("\(client.name) could not register within 20 s")
                }
            }
        }
    }

    /// Sends the latest batches and a sample of the earlier ones again, for the judge to compare.
    func repeatAcceptedBatches() throws {
        let accepted = stage.update { $0.accepted }
        let step = max(1, accepted.count / 40)
        let older = stride(from: 0, to: max(0, accepted.count - 40), by: step)
        let http = gateway.http(timeoutSeconds: Self.requestTimeout)
        for (batch, subjects) in older.map({ accepted[$0] }) + accepted.suffix(40) {
            try post(batch, subjects, http)
        }
    }

    /// Waits until every stream was handed a cursor that covers a change posted now.
    func awaitStreams(seconds: Double = 20) throws {
        let sequence = try postUntilAccepted(.pulse)
        let deadline = recorder.now + seconds
        for client in clients {
            guard case .stream = client.channel else { continue }
            let left = max(0, deadline - recorder.now)
            let came = client.state.wait(seconds: left) { $0.watermark >= sequence ? true : nil }
            recorder.require(
                came == true,
                "\(client.name) is still at \(client.watermark) \(seconds) s after the change at "
                    + "\(sequence)")
        }
    }

    /// Compares what the gateway stores with what it answered: the catalog and each registration.
    /// Call it after ``settle()``: nothing may change meanwhile.
    func judgeStored() throws {
        let http = gateway.http(timeoutSeconds: Self.requestTimeout)
        let answer = try http.request("GET", "/v1/apps/\(Game.app)/catalog", token: backend)
        let known = stage.update { $0.unansweredCatalogs.map(\.text) + [$0.catalog.text] }
        recorder.require(
            known.contains(answer.text),
            "the current catalog is not the last accepted one: \(answer.text.prefix(40))")
        for client in clients where !client.state.update({ $0.isUnsure }) {
            try judgeRegistration(of: client, mayBeMissing: false, http)
        }
        for client in newClients where client.state.update({ $0.number > 0 }) {
            let isUnsure = client.state.update { $0.isUnsure }
            try judgeRegistration(of: client, mayBeMissing: isUnsure, http)
        }
    }

    /// Compares a client's stored registration with the one that was sent last. `mayBeMissing`: it
    /// was a new client's first, and had no answer.
    func judgeRegistration(of client: FaultClient, mayBeMissing: Bool, _ http: TestHTTP) throws {
        var answer = try http.request("GET", client.path, token: backend)
        // A node may take the lead just now.
        if answer.status == 503 {
            try blockUntil("a registration is shown", details: { answer.text }) {
                answer = try http.request("GET", client.path, token: backend)
                return answer.status != 503
            }
        }
        func widgets(_ document: JSONValue?) -> [[JSONValue]]? {
            document?.objectValue?["widgets"]?.arrayValue?.map { widget in
                let members = widget.objectValue
                return [
                    members?["kind"] ?? .null, members?["family"] ?? .null,
                    members?["parameters"] ?? [:],
                ]
            }
        }
        recorder.require(
            mayBeMissing && answer.status == 404
                || answer.status == 200
                    && widgets(answer.json) == widgets(client.placement.document),
            "\(client.name)'s registration is not as accepted: \(answer.status) \(answer.text)")
    }

    private func finalPoll(_ client: FaultClient) throws {
        let deadline = recorder.now + 20
        while true {
            do {
                return try poll(client, gateway.http(timeoutSeconds: Self.requestTimeout))
            } catch {
                guard recorder.now < deadline else { throw error }
                pause(seconds: 0.05)
            }
        }
    }
}
