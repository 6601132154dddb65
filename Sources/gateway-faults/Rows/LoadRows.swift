import GatewayTestSupport
import WidgetModel

/// Faults of peers: more of them, or of their bytes, than there should be.
extension RowContext {
    /// More connections come than the gateway may open files (finding V2).
    func descriptors() throws {
        let limit = generator.pick([256, 512, 1_024])
        let gateway = try GatewayProcess(wrapper: ["prlimit", "--nofile=\(limit):\(limit)"])
        let campaign = try startCampaign(on: gateway) { ($0.streams, $0.pollers) = (6, 2) }
        let recorder = campaign.recorder
        pause(seconds: 1)
        let crowd = try Crowd(gateway, connections: limit + 400)
        let (pid, connections) = (gateway.pid, crowd.count)
        let end = recorder.now + seconds
        while recorder.now < end, gateway.exit == nil { pause(seconds: 0.2) }
        recorder.require(
            gateway.exit == nil && gateway.pid == pid,
            "it exited with \(limit) descriptors: \(String(describing: gateway.exit))")
        crowd.close()
        if gateway.exit != nil { try gateway.start() }
        let recovery = campaign.awaitAcceptance()
        try campaign.settle()
        report("descriptors", limit)
        report("connections of the crowd", connections)
        report("recovery", seconds: recovery)
    }

    /// Peers that say nothing, half of something, or nonsense.
    func rudeClients() throws {
        let gateway = try GatewayProcess()
        let campaign = try startCampaign(on: gateway) { $0.cutPercent = 0 }
        var slowest = 0.0
        // The first bytes of a TLS ClientHello whose rest never comes.
        let half: [UInt8] = [0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xFC, 0x03, 0x03]
        try repeatFault(on: campaign) {
            let garbage = (0..<200).map { _ in UInt8(generator.below(256)) }
            let crowd = try Crowd(
                gateway, connections: 500, sending: generator.pick([[], half, garbage]))
            for _ in 0..<20 {
                let start = campaign.recorder.now
                _ = try campaign.postUntilAccepted(.pulse)
                slowest = max(slowest, campaign.recorder.now - start)
                pause(seconds: 0.05)
            }
            crowd.close(resets: generator.happens(50))
        }
        campaign.recorder.require(slowest < 2, "a post over a new connection took \(slowest) s")
        report("slowest post over a new connection", seconds: slowest, places: 3)
    }

    /// Many large posts at once (finding V4).
    func memory() throws {
        let gateway = try GatewayProcess()
        let campaign = try startCampaign(on: gateway) {
            ($0.streams, $0.pollers, $0.posters) = (4, 2, 1)
        }
        pause(seconds: 1)
        let idle = gateway.residentBytes
        let recorder = campaign.recorder
        let end = recorder.now + seconds
        let statuses = TestHTTPMonitor<[Int: Int]>([:])
        let posters = 60
        let body = largePost()
        try onThreads(posters) { _ in
            while recorder.now < end {
                let answer = try? gateway.http(timeoutSeconds: 20).request(
                    "POST", "/v1/apps/\(Game.app)/changes", token: campaign.backend,
                    headers: [("Content-Type", "application/cloudevents-batch+json")], body: body)
                statuses.update { $0[answer?.status ?? 0, default: 0] += 1 }
                if answer?.status != 202 { pause(seconds: 0.2) }
            }
        }
        let peak = gateway.peakResidentBytes
        let growth = (peak - idle) / 1_048_576
        recorder.require(gateway.exit == nil, "it exited: \(String(describing: gateway.exit))")
        // Whatever the number of posts: the limits of bodies in work and of what is made of them,
        // with the allocator's own share.
        recorder.require(
            growth <= 400, "\(posters) posts of \(body.utf8.count) bytes took \(growth) MB")
        try campaign.settle()
        report("idle MB", idle / 1_048_576)
        report("peak MB", peak / 1_048_576)
        let answers = statuses.update { $0 }.sorted { $0.key < $1.key }
        report("answers", answers.map { "\($0.key): \($0.value)" }.description)
    }

    /// Returns 950 events of 7.5 kB, each about a character without followers.
    private func largePost() -> String {
        let filler = JSONValue.string(String(repeating: "x", count: 240))
        var attributes = JSONObject()
        for index in 0..<28 { attributes["attribute-\(index)"] = filler }
        let events = (0..<950).map { index -> JSONValue in
            [
                "specversion": "1.0", "type": "test.changed", "source": "large",
                "id": .string("\(seed)-\(index)"),
                "data": [
                    "entity": "Character", "id": "nobody", "attributes": .object(attributes),
                ],
            ]
        }
        return JSONValue.array(events).text
    }
}
