import GatewayTestSupport
import WidgetModel

/// A registration is replaced, moved to another account or removed within a few milliseconds of the
/// moment at which its client opens a stream (finding V1).
enum RegistrationRow {
    private enum Change: CaseIterable { case otherWidgets, otherAccount, removal }

    static func run(_ context: RowContext) throws {
        let gateway = try GatewayProcess()
        var load = Campaign.Load()
        (load.streams, load.pollers) = (8, 0)
        let campaign = try context.campaign(on: gateway, load)
        let http = gateway.http()
        let end = campaign.recorder.now + context.seconds
        // The time from opening a stream to its head, as a guess for the next.
        var (typical, trials, close) = (0.02, 0, 0)
        while campaign.recorder.now < end {
            let client = context.generator.pick(campaign.clients)
            let change = context.generator.pick(Change.allCases)
            let offset = context.seconds(0, typical * 1.3)
            let trial = try Trial(campaign, client, http, context).run(change, after: offset)
            typical = typical * 0.8 + trial.head * 0.2
            trials += 1
            if abs(trial.gap) < 0.005 { close += 1 }
        }
        try campaign.settle()
        context.figures += [
            ("trials", "\(trials)"), ("answered within 5 ms of the stream's head", "\(close)"),
        ]
    }

    /// One stream, and one change of its registration beside it.
    private struct Trial {
        let campaign: Campaign
        let client: FaultClient
        let http: TestHTTP
        let context: RowContext

        init(
            _ campaign: Campaign, _ client: FaultClient, _ http: TestHTTP, _ context: RowContext
        ) {
            (self.campaign, self.client) = (campaign, client)
            (self.http, self.context) = (http, context)
        }

        /// - Returns: The time to the stream's head, and from there to the registration's answer.
        func run(_ change: Change, after offset: Double) throws -> (head: Double, gap: Double) {
            let recorder = campaign.recorder
            let before = client.placement
            let opened = recorder.now
            let stream = campaign.gateway.stream(
                app: Game.app, client: client.name, token: client.token, from: client.cursor)
            defer { stream.close() }
            let headAt = TestHTTPMonitor<Double?>(nil)
            onThread {
                _ = stream.head(seconds: 10)
                headAt.update { $0 = recorder.now }
            }
            pause(seconds: offset)
            var placement = before
            switch change {
            case .otherWidgets:
                placement = .random(isParty: before.isParty, using: &context.generator)
                placement.account = before.account
            case .otherAccount:
                placement.account = context.generator.pick(
                    Game.accounts.filter { $0 != before.account })
            case .removal: break
            }
            if change == .removal {
                try remove()
            } else {
                try campaign.register(client, placement, http)
            }
            let answered = recorder.now
            let head = headAt.wait(seconds: 10) { $0 } ?? answered
            let status = stream.head(seconds: 0)?.status ?? 0
            // Changes of the old and of the new: the judge knows which of them are owed.
            let subjects = before.interests.union(placement.interests).map(\.subject)
                .filter { $0 != .pulse }
            let last = try post(Set(subjects).sorted { "\($0)" < "\($1)" } + [.pulse])
            read(stream, opened: opened, until: last, isRemoved: change == .removal)
            if change == .removal {
                recorder.require(
                    status != 200 || stream.waitForEnd(seconds: 5),
                    "\(client.name): its stream stays open after DELETE was answered")
                try campaign.register(client, placement, http, buildsAnew: true)
            }
            return (head - opened, answered - head)
        }

        private func post(_ subjects: [Subject]) throws -> UInt64 {
            let (batch, subjects) = campaign.openBatch(subjects)
            return try campaign.postUntilAccepted(batch, subjects, on: http)
        }

        private func remove() throws {
            let number = client.state.update { state in
                state.number += 1
                return state.number
            }
            campaign.recorder.add(
                .registering(client: client.name, number: number, interests: []))
            let answer = try http.request("DELETE", client.path, token: campaign.backend)
            guard answer.status == 204 || answer.status == 200 else {
                throw WireFault(what: "DELETE was answered \(answer.status): \(answer.text)")
            }
            campaign.recorder.add(
                .registered(client: client.name, number: number, outcome: .inForce))
        }

        /// Reads until the stream's cursor covers `last`.
        private func read(
            _ stream: TestHTTPStream, opened: Double, until last: UInt64, isRemoved: Bool
        ) {
            let deadline = campaign.recorder.now + (isRemoved ? 1 : 5)
            while client.watermark < last, campaign.recorder.now < deadline {
                guard case .block(let block)? = stream.next(timeout: 0.2) else {
                    if stream.isOver { return }
                    continue
                }
                campaign.take(block, client, opened: opened)
            }
        }
    }
}
