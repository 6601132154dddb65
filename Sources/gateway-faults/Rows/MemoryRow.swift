import GatewayTestSupport
import WidgetModel

/// Many large posts at once (finding V4).
enum MemoryRow {
    /// Most that resident memory may grow, whatever the number of posts: the limits of bodies in
    /// work and of what is made of them, with the allocator's own share.
    private static let growthMegabytesMax = 400

    static func run(_ context: RowContext) throws {
        let gateway = try GatewayProcess()
        var load = Campaign.Load()
        (load.streams, load.pollers, load.posters) = (4, 2, 1)
        let campaign = try context.campaign(on: gateway, load)
        campaign.start(&context.generator)
        pause(seconds: 1)
        let idle = gateway.residentBytes
        let recorder = campaign.recorder
        let end = recorder.now + context.seconds
        let statuses = TestHTTPMonitor<[Int: Int]>([:])
        let posters = 60
        // 950 events of 7.5 kB, each about a character that nobody follows.
        let filler = String(repeating: "x", count: 240)
        let body = JSONValue.array(
            (0..<950).map { index in
                [
                    "specversion": "1.0", "type": "test.changed", "source": "large",
                    "id": .string("\(context.seed)-\(index)"),
                    "data": [
                        "entity": "Character", "id": "nobody",
                        "attributes": .object(attributes(filler)),
                    ],
                ]
            }
        ).text
        try onThreads(posters) { _ in
            while recorder.now < end {
                do {
                    let answer = try gateway.http(timeoutSeconds: 20).request(
                        "POST", "/v1/apps/\(Game.app)/changes", token: campaign.backend,
                        headers: [("Content-Type", "application/cloudevents-batch+json")],
                        body: body)
                    statuses.update { $0[answer.status, default: 0] += 1 }
                    if answer.status != 202 { pause(seconds: 0.2) }
                } catch {
                    statuses.update { $0[0, default: 0] += 1 }
                    pause(seconds: 0.2)
                }
            }
        }
        let peak = gateway.peakResidentBytes
        let growth = (peak - idle) / 1_048_576
        recorder.require(gateway.exit == nil, "it died: \(String(describing: gateway.exit))")
        recorder.require(
            growth <= growthMegabytesMax,
            "\(posters) posts of \(body.utf8.count) bytes at once took \(growth) MB")
        try campaign.settle()
        context.figures += [
            ("idle MB", "\(idle / 1_048_576)"), ("peak MB", "\(peak / 1_048_576)"),
            (
                "answers",
                "\(statuses.update { $0 }.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" })"
            ),
        ]
    }

    private static func attributes(_ filler: String) -> JSONObject {
        var object = JSONObject()
        for index in 0..<28 { object["attribute-\(index)"] = .string(filler) }
        return object
    }
}
