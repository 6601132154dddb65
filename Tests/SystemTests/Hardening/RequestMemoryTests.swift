import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// The bodies of requests in progress have a budget: memory stays bounded however much is
/// posted at once.
@Suite(.alone) struct RequestMemoryTests {
    private static let posts = 60
    /// The process itself, eight bodies of the largest size in progress, and as much again for
    /// memory that the allocator keeps.
    private static let residentMax = 512 << 20

    /// Returns a batch of just under 7 MiB: 1,000 events with 30 attributes each.
    private static func batch(_ source: String) -> String {
        let attributes = (0..<30).map { #""a\#($0)":"\#(String(repeating: "x", count: 220))""# }
            .joined(separator: ",")
        let events = (0..<1_000).map { number in
            #"{"specversion":"1.0","type":"t","source":"\#(source)","id":"\#(number)","#
                + #""data":{"entity":"Character","id":"panda","attributes":{\#(attributes)}}}"#
        }
        return "[" + events.joined(separator: ",") + "]"
    }

    @Test func largePostsAtOnceStayWithinABoundOfMemory() async throws {
        let gateway = try GatewayProcess()
        let game = try GameFixture(gateway)
        let client = try game.client("bystander", ["panda"])
        let other = try gateway.token(app: "com.other", scope: "catalog:write changes:write")
        try gateway.http().putCatalog(
            GameFixture.catalog().replacing(GameFixture.app, with: "com.other"),
            app: "com.other", token: other)
        let body = Self.batch("large")
        try #require(body.utf8.count > 6 << 20)
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<Self.posts {
                group.addTask {
                    let http = gateway.http()
                    let answer = try await http.send(
                        "POST", "/v1/apps/\(GameFixture.app)/changes", token: game.backend,
                        headers: [("Content-Type", "application/cloudevents-batch+json")],
                        body: body)
                    if answer.status == 503 || answer.status == 429 {
                        #expect(answer.header("retry-after") != nil)
                    }
                    return answer.status
                }
            }
            // Other apps, and requests without bodies, are served nevertheless.
            _ = try game.poll(client, since: client.cursor)
            let small = try gateway.http().post(
                [event(source: "small", id: "0", entity: "Character", key: "panda")],
                app: "com.other", token: other)
            #expect(small["accepted"] == 1, "\(small.text)")
            return try await group.reduce(into: [Int: Int]()) { $0[$1, default: 0] += 1 }
        }
        #expect(Set(statuses.keys).isSubset(of: [202, 429, 503]), "\(statuses)")
        #expect(statuses[202] ?? 0 > 0, "\(statuses)")
        let peak = gateway.peakResidentBytes
        print("request memory: \(statuses), peak \(peak >> 20) MiB")
        #expect(peak < Self.residentMax, "the peak was \(peak >> 20) MiB: \(statuses)")
        #expect(gateway.terminate() == .status(0))
    }
}
