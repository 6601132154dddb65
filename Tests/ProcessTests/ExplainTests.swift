import APNsSimulator
import GatewayTestSupport
import Testing
import WidgetModel

extension ProcessTests {
    /// The gateway's explanations of changes and clients, compared with the notifications that
    /// really arrived.
    @Suite struct ExplainTests {
        /// A thousand changes, and a thousand clients that follow, poll, acknowledge, receive
        /// pushes or do nothing.
        @Test func whatIsExplainedIsWhatWasDelivered() async throws {
            let seed: UInt64 = 7
            let world = try ExplainFixture(seed: seed, clients: 1_000)
            for number in stride(from: 6, to: 1_000, by: 50) {
                world.push.apns.script(
                    "aa" + hexadecimal(number * 2), [.refused(.badDeviceToken)])
            }
            try world.register(0..<800)
            var (left, returning): ([Int], [Int]) = ([], [])
            for round in 0..<100 {
                if round == 40 { try world.register(800..<1_000) }
                if round == 50 {
                    left = Array(world.followers.shuffled(using: &world.random).prefix(40))
                    returning = Array(left.prefix(20))
                    try world.leave(left)
                }
                if round == 70 { try world.comeBack(returning) }
                let posted =
                    round % 33 == 32
                    ? [
                        ExplainModel.Posted(
                            entity: "Character", id: nil, operation: "update", account: nil)
                    ] : world.someChanges(round < 90 ? 10 : 14)
                try world.post(posted)
                for _ in 0..<12 {
                    let number = world.random.below(world.model.clients.count)
                    guard !world.model.clients[number].isFollowing, number % 10 >= 2 else {
                        continue
                    }
                    switch number % 10 {
                    case 2...4: try world.poll(number)
                    case 5: try world.poll(number, kind: "detail")
                    case 6: try world.poll(number)
                    default: break
                    }
                    if number % 4 == 0, number % 10 != 5 {
                        try world.acknowledge(number, sets: world.random.happens(50))
                    }
                }
                try world.listen()
                if round % 5 == 0,
                    let follower = world.followers.randomElement(using: &world.random)
                {
                    try world.acknowledge(follower, sets: true)
                }
            }
            #expect(world.model.changes.count >= 1_000)
            try world.settle(world.followers)
            try judgeChanges(world, world.model.changes.keys.sorted())
            try judgeClients(world)
            try judgePrediction(world)
            try judgeWaiting(world)
            await world.push.stop()
        }

        private func hexadecimal(_ number: Int) -> String {
            let text = String(number, radix: 16)
            return String(repeating: "0", count: 6 - text.count) + text
        }

        /// Checks changes that wait for the end of a window: the first of each was notified at
        /// once.
        private func judgeWaiting(_ world: ExplainFixture) throws {
            let rumours = (0..<12).map { number in
                ExplainModel.Posted(
                    entity: "Rumour", id: "r\(number % 4)", operation: "update", account: nil)
            }
            try world.post(rumours)
            let sequences = world.model.changes.keys.sorted().suffix(12)
            for _ in 0..<500 {
                try world.listen()
                let last = sequences[sequences.startIndex + 3]
                if world.model.tally(of: last).withheld == 0 { break }
                pause(seconds: 0.01)
            }
            for (place, sequence) in sequences.enumerated() {
                let explanation = try world.explain(change: sequence)
                let said = ExplainModel.Tally(explanation)
                #expect(said == world.model.tally(of: sequence))
                #expect((place < 4) == (said.withheld == 0))
                guard place >= 4 else { continue }
                let reasons = explanation["outcomes"]?.objectValue?["withheldFor"]?.arrayValue
                #expect(
                    reasons?.compactMap { $0.objectValue?["reason"]?.stringValue } == ["collapse"])
            }
        }

        private func judgeChanges(_ world: ExplainFixture, _ sequences: [UInt64]) throws {
            var (wrong, all) = (0, ExplainModel.Tally())
            for sequence in sequences {
                let explanation = try world.explain(change: sequence)
                let said = ExplainModel.Tally(explanation)
                let truth = world.model.tally(of: sequence)
                let holders = explanation["holders"]?.objectValue?["count"]?.integerValue
                if said != truth || holders != Int64(truth.holders) {
                    wrong += 1
                    if wrong <= 5 {
                        Issue.record(
                            """
                            \(sequence) \(String(describing: world.model.changes[sequence])):
                            said  \(said)
                            truth \(truth)
                            """)
                    }
                }
                let isUnmatched = world.model.changes[sequence]?.entity == "Nobody"
                #expect(explanation["unmatched"] == .bool(isUnmatched))
                all.confirmed += truth.confirmed
                all.sent.merge(truth.sent) { $0 + $1 }
                all.collapsed.merge(truth.collapsed) { $0 + $1 }
                all.withheld += truth.withheld
                all.unreachable += truth.unreachable
            }
            print("explain: \(sequences.count) changes, \(wrong) wrong;", all.holders, "holders")
            #expect(wrong == 0)
            // The test proves little unless it meets all outcomes.
            #expect(all.confirmed > 100 && all.withheld > 100 && all.unreachable > 100)
            #expect(all.collapsed.count > 10)
            #expect(
                Set(all.sent.keys) == ["stream", "poll", "widgets", "background"], "\(all.sent)")
        }

        private func judgeClients(_ world: ExplainFixture) throws {
            var stale = 0
            for (number, client) in world.model.clients.enumerated() {
                let explanation = try world.explain(client: number)
                var shown = explanation["widgets"]?.arrayValue ?? []
                shown += explanation["recommendations"]?.arrayValue ?? []
                try #require(shown.count == client.items.count)
                for (item, standing) in zip(client.items, shown) {
                    let object = try #require(standing.objectValue)
                    let confirmed = item == .set ? client.setConfirmed : client.confirmed
                    let changes = world.model.changes(of: item, client)
                    let owed = changes.filter { $0 > confirmed }
                    #expect(object["fresh"] == .bool(owed.isEmpty), "\(client.name) \(item)")
                    guard let latest = owed.last else { continue }
                    stale += 1
                    let said = object["stale"]?.objectValue
                    #expect(said?["latest"]?.integerValue == Int64(latest))
                    #expect(said?["sequence"]?.integerValue == owed.first.map { Int64($0) })
                    #expect(said?["isEarliest"] == true)
                    let truth = world.model.outcome(of: latest, item, client)
                    let words: [String]
                    switch truth {
                    case .confirmed: words = ["confirmed"]
                    case .sent(let channel): words = ["sent", channel]
                    case .collapsed(let into): words = ["collapsed", "\(into)"]
                    case .withheld: words = ["withheld"]
                    case .unreachable: words = ["unreachable"]
                    }
                    #expect(object["outcome"]?.stringValue == words[0], "\(client.name) \(item)")
                    if case .sent(let channel) = truth {
                        #expect(object["channel"]?.stringValue == channel)
                    }
                }
            }
            print("explain: \(world.model.clients.count) clients, \(stale) stale things")
            #expect(stale > 100)
        }

        /// Compares the predicted outcomes of a change with those after it is made.
        private func judgePrediction(_ world: ExplainFixture) throws {
            for character in ["h1", "h2", "h3"] {
                let event: JSONValue = [
                    "specversion": "1.0", "type": "changed", "source": "prediction", "id": "1",
                    "data": ["entity": "Character", "id": .string(character)],
                ]
                let answer = try world.http.request(
                    "POST", "/v1/apps/\(ExplainFixture.app)/changes/explain",
                    token: world.push.backend,
                    headers: [("Content-Type", "application/cloudevents+json")], body: event.text)
                try #require(answer.status == 200, "\(answer.text)")
                let predicted = ExplainModel.Tally(
                    try #require(answer["events"]?.arrayValue?.first?.objectValue))
                try world.post([
                    .init(entity: "Character", id: character, operation: "update", account: nil)
                ])
                try world.settle(world.followers)
                let head = try #require(world.model.changes.keys.max())
                let truth = world.model.tally(of: head)
                #expect(predicted == truth, "\(character)")
            }
        }
    }
}
