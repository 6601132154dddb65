import GatewayTestSupport
import WidgetModel

/// The backend's side: posts, registrations, catalogs.
extension Campaign {
    // MARK: Posts

    /// Posts batches until changes stop; one without a 202 is sent again.
    func post(as poster: Int, _ generator: inout SplitMix64) {
        var current: (batch: Int, subjects: [Subject])?
        keepTrying(while: { isChanging }, version: poster == 1 ? .two : .one) { http in
            let (batch, subjects) = current ?? newBatch(&generator)
            current = (batch, subjects)
            switch try post(batch, subjects, http) {
            case .accepted: current = nil
            case .refused: pause(seconds: 0.05)
            case .unknown: break
            }
            pause(seconds: Double(generator.below(load.postPauseMilliseconds + 1)) / 1000)
        }
    }

    private func newBatch(_ generator: inout SplitMix64) -> (Int, [Subject]) {
        let count = generator.happens(60) ? 1 : 2 + generator.below(11)
        return openBatch(
            (0..<count).map { _ in Subject.random(using: &generator) })
    }

    func openBatch(_ subjects: [Subject]) -> (batch: Int, subjects: [Subject]) {
        stage.update { stage in
            stage.nextBatch += 1
            stage.open[stage.nextBatch] = subjects
            return (stage.nextBatch, subjects)
        }
    }

    /// Posts one batch once and records the outcome. If it throws the connection's error, the
    /// outcome is unknown.
    @discardableResult
    func post(_ batch: Int, _ subjects: [Subject], _ http: TestHTTP) throws -> PostOutcome {
        let sent = recorder.now
        func record(_ outcome: PostOutcome) {
            recorder.add(
                .posted(
                    PostAttempt(batch: batch, subjects: subjects, sent: sent, outcome: outcome)))
        }
        let answer: TestHTTPAnswer
        do {
            answer = try http.post(
                Game.events(batch: batch, subjects, run: run), app: Game.app, token: backend)
        } catch {
            record(.unknown)
            throw error
        }
        guard answer.status == 202 else {
            record(.refused(status: answer.status))
            recorder.require(
                load.allowedStatuses.contains(answer.status), "a post got \(answer.text)")
            recorder.require(
                answer.header("retry-after") != nil || ![429, 503].contains(answer.status),
                "a post got status \(answer.status) without Retry-After")
            return .refused(status: answer.status)
        }
        let outcome = PostOutcome.accepted(
            accepted: Int(answer["accepted"]?.integerValue ?? -1),
            duplicates: Int(answer["duplicates"]?.integerValue ?? -1),
            sequence: UInt64(clamping: answer["sequence"]?.integerValue ?? 0))
        record(outcome)
        stage.update { stage in
            stage.lastAccepted = recorder.now
            if stage.open.removeValue(forKey: batch) != nil {
                stage.accepted.append((batch, subjects))
            }
        }
        return outcome
    }

    /// Posts one change until it is accepted; returns its sequence. Throws ``TestFailure`` when it
    /// was not accepted in time.
    func postUntilAccepted(_ subject: Subject, seconds: Double = 20) throws -> UInt64 {
        let (batch, subjects) = openBatch([subject])
        return try postUntilAccepted(batch, subjects, seconds: seconds)
    }

    /// Posts a batch until it is taken; returns its sequence.
    func postUntilAccepted(
        _ batch: Int, _ subjects: [Subject], on http: TestHTTP? = nil, seconds: Double = 20
    ) throws -> UInt64 {
        let deadline = recorder.now + seconds
        while recorder.now < deadline {
            let http = http ?? gateway.http(timeoutSeconds: Self.requestTimeout)
            if let outcome = try? post(batch, subjects, http),
                case .accepted(_, _, let sequence) = outcome
            {
                return sequence
            }
            pause(seconds: 0.05)
        }
        throw TestFailure("a post was not accepted within \(seconds) s")
    }

    // MARK: Registrations

    /// Registers a client with other widgets; the record says whether it is known to be in force.
    func register(
        _ client: FaultClient, _ placement: Game.Placement, _ http: TestHTTP,
        buildsAnew: Bool = false
    ) throws {
        let number = client.state.update { state in
            state.number += 1
            state.placement = placement
            state.isUnsure = true
            return state.number
        }
        recorder.add(
            .registering(client: client.name, number: number, interests: placement.interests))
        let answer = try? http.register(
            client.name, app: Game.app, token: backend, placement.document)
        guard let answer, answer.status == 200 || answer.status == 201,
            let text = answer["cursor"]?.stringValue
        else {
            recorder.add(.registered(client: client.name, number: number, outcome: .unknown))
            throw TestFailure("\(client.name): \(answer?.text ?? "no answer")")
        }
        let sequence = try Cursor.sequence(text)
        recorder.add(
            .registered(
                client: client.name, number: number,
                outcome: buildsAnew
                    ? .builtAnew(sequence: sequence)
                    : .inForce(from: deployment.isCluster ? sequence : 0)))
        client.state.update { state in
            if state.number == number { state.isUnsure = false }
            if buildsAnew { (state.cursor, state.watermark) = (text, sequence) }
        }
    }

    /// Changes the widgets of random clients until changes stop.
    func changeRegistrations(_ generator: inout SplitMix64) {
        keepTrying(while: { isChanging }) { http in
            pause(seconds: Double(generator.below(60)) / 1000)
            let client = generator.pick(clients)
            let isParty = client.placement.isParty
            try register(client, .random(isParty: isParty, using: &generator), http)
        }
    }

    /// Registers the new clients until changes stop; one without an answer is registered again.
    func registerNewClients() {
        var left = newClients[...]
        keepTrying(while: { isChanging && !left.isEmpty }, version: .two) { http in
            guard let client = left.first else { return }
            // An attempt without an answer came whole or not at all.
            if client.state.update({ $0.isUnsure }) {
                try judgeRegistration(of: client, mayBeMissing: true, http)
            }
            try register(client, client.placement, http, buildsAnew: true)
            left.removeFirst()
            pause(seconds: 0.01)
        }
    }

    // MARK: Catalogs

    func putCatalogs(_ generator: inout SplitMix64) {
        keepTrying(while: { isChanging }) { http in
            try putCatalog(http, variant: generator.below(1_000_000))
            pause(seconds: 0.1 + Double(generator.below(400)) / 1000)
        }
    }

    func putCatalog(_ http: TestHTTP, variant: Int) throws {
        let catalog = Game.catalog(variant: variant)
        let sent = recorder.now
        stage.update { $0.unansweredCatalogs.append((catalog, sent)) }
        let answer = try http.request(
            "PUT", "/v1/apps/\(Game.app)/catalog", token: backend,
            headers: [("Content-Type", "application/yaml")], body: catalog)
        guard answer.status == 200 || answer.status == 201,
            let sequence = answer["sequence"]?.integerValue
        else { throw TestFailure("a catalog got status \(answer.status): \(answer.text)") }
        let place = UInt64(clamping: sequence)
        recorder.add(.catalog(sequence: place))
        stage.update { stage in
            // An earlier catalog without an answer has a lower sequence, unless its request has not
            // timed out yet.
            stage.unansweredCatalogs.removeAll {
                $0.text == catalog || $0.sent < sent - Double(Self.requestTimeout)
            }
            if place > stage.catalog.sequence { stage.catalog = (catalog, place) }
        }
    }
}
