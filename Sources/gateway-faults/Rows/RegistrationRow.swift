import GatewayTestSupport
import WidgetModel

private enum RegistrationChange: CaseIterable { case otherWidgets, otherAccount, removal }

extension RowContext {
    /// A registration is replaced, moved to another account or removed within a few milliseconds of
    /// the moment at which its client opens a stream (finding V1).
    func registration() throws {
        let gateway = try GatewayProcess()
        let campaign = try makeCampaign(on: gateway) { ($0.streams, $0.pollers) = (8, 0) }
        let http = gateway.http()
        // The time from opening a stream to its head, as a guess for the next.
        var typical = 0.02
        try repeatFault(on: campaign) {
            let client = generator.pick(campaign.clients)
            let change = generator.pick(RegistrationChange.allCases)
            let offset = randomSeconds(0, typical * 1.3)
            let trial = try campaign.tryChange(
                change, of: client, after: offset, on: http, using: &generator)
            typical = typical * 0.8 + trial.head * 0.2
            count("trials")
            count("answered within 5 ms of the stream's head", abs(trial.gap) < 0.005 ? 1 : 0)
        }
    }
}

extension Campaign {
    /// Opens a stream, and changes its registration beside it. Returns the time to the stream's
    /// head, and from there to the registration's answer.
    fileprivate func tryChange(
        _ change: RegistrationChange, of client: FaultClient, after offset: Double,
        on http: TestHTTP, using generator: inout SplitMix64
    ) throws -> (head: Double, gap: Double) {
        let before = client.placement
        let opened = recorder.now
        let stream = gateway.stream(
            app: Game.app, client: client.name, token: client.token, from: client.cursor)
        defer { stream.close() }
        let headAt = TestHTTPMonitor<Double?>(nil)
        onThread { [recorder] in
            _ = stream.head()
            headAt.update { $0 = recorder.now }
        }
        pause(seconds: offset)
        var placement = before
        switch change {
        case .otherWidgets:
            placement = .random(isParty: before.isParty, using: &generator)
            placement.account = before.account
        case .otherAccount:
            placement.account = generator.pick(Game.accounts.filter { $0 != before.account })
        case .removal: break
        }
        if change == .removal {
            try remove(client, http)
        } else {
            try register(client, placement, http)
        }
        let answered = recorder.now
        let head = headAt.wait(seconds: Patience.seconds) { $0 } ?? answered
        let status = stream.head(seconds: 0)?.status ?? 0
        // Changes of the old and of the new: the judge knows which of them are owed.
        let subjects = before.interests.union(placement.interests).map(\.subject)
            .filter { $0 != .pulse }
        let (batch, all) = openBatch(Set(subjects).sorted { "\($0)" < "\($1)" } + [.pulse])
        let last = try postUntilAccepted(batch, all, on: http)
        read(stream, client, opened: opened, until: last, seconds: change == .removal ? 1 : 5)
        if change == .removal {
            recorder.require(
                status != 200 || stream.waitForEnd(),
                "\(client.name): its stream stays open after the response to DELETE")
            try register(client, placement, http, buildsAnew: true)
        }
        return (head - opened, answered - head)
    }

    private func remove(_ client: FaultClient, _ http: TestHTTP) throws {
        let number = client.state.update { state in
            state.number += 1
            return state.number
        }
        recorder.add(.registering(client: client.name, number: number, interests: []))
        let answer = try http.request("DELETE", client.path, token: backend)
        guard answer.status == 204 || answer.status == 200 else {
            throw TestFailure("DELETE got status \(answer.status): \(answer.text)")
        }
        recorder.add(.registered(client: client.name, number: number, outcome: .inForce(from: 0)))
    }

    /// Reads until the stream's cursor covers `last`.
    private func read(
        _ stream: TestHTTPStream, _ client: FaultClient, opened: Double, until last: UInt64,
        seconds: Double
    ) {
        let deadline = recorder.now + seconds
        while client.watermark < last, recorder.now < deadline {
            guard case .block(let block)? = stream.next(timeout: 0.2) else {
                if stream.isOver { return }
                continue
            }
            take(block, client, opened: opened)
        }
    }
}
