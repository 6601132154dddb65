import ArgumentParser
import Testing
import TimelineGatewayClient
import WidgetModel

@testable import timelinectl

@Suite struct OutboxCommandTests {
    private func refusal(
        _ status: Int, _ code: String, _ faults: [Fault] = [], retryAfter: Int? = nil
    ) -> GatewayFailure {
        .refused(
            ProblemDetails(
                status: status, code: code, title: "no", faults: faults, retryAfter: retryAfter))
    }

    @Test func whatTheGatewayNamesIsSetAside() {
        var batch = EventBatch()
        let faults = [
            Fault("[3].data.entity", "is required"), Fault("[3].id", "is long"),
            Fault("[0].data.id", "is long"), Fault("[9]", "is of no event"), Fault("[x]", "nor"),
        ]
        let reasons = [
            3: "invalid: [3].data.entity: is required", 0: "invalid: [0].data.id: is long",
        ]
        let decision = batch.decide(
            count: 9, failure: refusal(422, "invalid", faults), random: 0)
        #expect(decision == .setAside(reasons))
        let reused = refusal(422, "event-id-reused", [Fault("id", "was used")])
        #expect(
            batch.decide(count: 1, failure: reused, random: 0)
                == .setAside([0: "event-id-reused: was used"]))
    }

    @Test func aBatchThatIsRefusedAsAWholeIsSplit() {
        var batch = EventBatch()
        #expect(batch.size == Limits().postEventsMax)
        for failure in [
            refusal(413, "too-large"), refusal(422, "invalid", [Fault("", "too many keys")]),
            refusal(400, "malformed"),
        ] {
            #expect(batch.decide(count: 100, failure: failure, random: 0) == .split)
            #expect(batch.size == 50)
            #expect(
                batch.decide(count: 1, failure: failure, random: 0) != .split, "\(failure)")
        }
        #expect(batch.decide(count: 50, failure: nil, random: 0) == .remove)
        #expect(batch.size == 100)
    }

    /// A proxy's page of errors has no code of the gateway.
    @Test(arguments: [400, 401, 403, 404, 415, 422, 429, 500, 502, 503])
    func nothingIsSetAsideForAProxy(status: Int) {
        var batch = EventBatch()
        let decision = batch.decide(
            count: 1, failure: refusal(status, "about:blank"), random: 1)
        #expect(decision == .retry(after: .seconds(1)))
        #expect(batch.size == Limits().postEventsMax)
    }

    @Test func aProxyMayLimitBodies() {
        var batch = EventBatch()
        let failure = refusal(413, "about:blank")
        #expect(batch.decide(count: 2, failure: failure, random: 1) == .split)
        #expect(batch.decide(count: 1, failure: failure, random: 1) == .retry(after: .seconds(1)))
    }

    @Test func waitsGrowAndHeedTheGateway() {
        var batch = EventBatch()
        let broken = GatewayFailure.connection(ConnectionError(.broken, "it broke off"))
        let waits = (0..<8).map { _ in batch.decide(count: 1, failure: broken, random: 1) }
        let seconds = [1, 2, 4, 8, 16, 32, 64, 64]
        #expect(waits == seconds.map { EventBatch.Decision.retry(after: .seconds($0)) })
        let busy = refusal(429, "log-full", retryAfter: 90)
        #expect(batch.decide(count: 1, failure: busy, random: 0) == .retry(after: .seconds(90)))
        #expect(batch.decide(count: 1, failure: nil, random: 0) == .remove)
        #expect(
            batch.decide(count: 1, failure: broken, random: 0)
                == .retry(after: .milliseconds(500)))
    }

    @Test func aBatchHasTheChangesAsTheyAre() throws {
        let change = Change(entity: "A\"\\\n", id: "1", properties: ["é"])
        let event = DatabaseEvent(
            id: "7f3a", time: "2026-11-30T12:00:00Z", change: change.json.serialized)
        let batch = try JSONValue(parsing: DatabaseEvent.batch([event, event]))
        let expected = CloudEvent(
            source: DatabaseEvent.outbox, id: "7f3a", time: "2026-11-30T12:00:00Z", change: change)
        let data = (batch.arrayValue ?? []).map { $0.objectValue?["data"] }
        #expect(data == [change.json, change.json])
        let members = batch.arrayValue?.first?.objectValue
        for name in ["specversion", "type", "source", "id", "time"] {
            #expect(members?[name] == expected.json.objectValue?[name], "\(name)")
        }
        #expect(DatabaseEvent.batch([]) == Array("[]".utf8))
    }

    /// PostgreSQL works on bytes: a mark behind a quote makes another character of it for Swift only.
    @Test func namesAreQuoted() {
        #expect(SQL.identifier("a\"\u{301}b") == "\"a\"\"\u{301}b\"")
        #expect(SQL.literal("a'\u{301}\\\u{301}") == "E'a''\u{301}\\\\\u{301}'")
    }

    @Test func functionsOfLongNamesAreDifferent() {
        let names = ["a", "b"].map { end in
            TableMapping(
                schema: "public", table: String(repeating: "é", count: 60) + end, entity: "E",
                id: "id", properties: [], attributes: [], isPart: false
            ).triggerName("change")
        }
        #expect(names[0] != names[1] && names.allSatisfy { $0.utf8.count <= 63 })
    }

    @Test func optionsNameColumns() throws {
        let command = try OutboxCommand.Init.parse([
            "--table", "t", "--entity", "E", "--property", "a", "--property", "b=c=d",
        ])
        #expect(
            command.properties == [.init(column: "a", name: "a"), .init(column: "b=c", name: "d")])
        for words in [["--property", "=c"], ["--property", ""], ["--attribute", "id"]] {
            #expect(throws: (any Error).self) {
                try OutboxCommand.Init.parse(["--table", "t", "--entity", "E"] + words)
            }
        }
    }
}
