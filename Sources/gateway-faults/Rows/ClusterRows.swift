import Foundation
import GatewayTestSupport

/// Faults of the nodes of a cluster.
extension RowContext {
    /// Loads a cluster, repeats a fault, and judges what is left. `adjust` changes the usual load.
    func repeatFault(
        on cluster: FaultCluster, _ adjust: (inout Campaign.Load) -> Void = { _ in },
        _ fault: (Campaign) throws -> Void
    ) throws {
        let campaign = try startCampaign(on: cluster, adjust)
        try repeatFault(on: campaign) { try fault(campaign) }
        try campaign.judgeStored()
        try cluster.judge(campaign.recorder)
    }

    /// `kill -9` of one or two nodes at random moments, some of them while a node starts.
    func nodesKilled() throws {
        let cluster = try FaultCluster()
        try repeatFault(on: cluster) {
            $0.newClients = 100
        } _: { _ in
            pauseRandomly(0.2, 2)
            let number = generator.happens(25) ? 2 : 1
            let victims = cluster.nodes.shuffled(using: &generator).prefix(number)
            for victim in victims { victim.kill() }
            count("kills", number)
            pauseRandomly(0, 1)
            for victim in victims { try startAgain(victim, killedPercent: 30) }
        }
    }

    /// Nodes are stopped for longer than their leases, and go on.
    func nodesStopped() throws {
        let cluster = try FaultCluster()
        try repeatFault(on: cluster) {
            // A registration that a stopped node has received is carried out once it goes on, also
            // after a later one through another node.
            $0.changesRegistrations = false
        } _: { campaign in
            pauseRandomly(0.5, 2)
            let node = generator.pick(cluster.nodes)
            // A lease lasts 10 s.
            let length = generator.happens(30) ? randomSeconds(10, 14) : randomSeconds(0.5, 5)
            node.signal(SIGSTOP)
            pause(seconds: length)
            node.signal(SIGCONT)
            count("stops")
            reportMost("longest", seconds: length)
            _ = campaign.awaitAcceptance()
        }
    }

    /// Drains and starts every node in turn; no client receives `all`.
    func rollingRestart() throws {
        let cluster = try FaultCluster()
        try repeatFault(on: cluster) {
            ($0.streams, $0.cutPercent) = (60, 0)
        } _: { campaign in
            for node in cluster.nodes {
                pauseRandomly(0.2, 1)
                let start = campaign.recorder.now
                campaign.requireOrderly(node.terminate())
                count("restarts")
                reportMost("slowest drain", seconds: campaign.recorder.now - start)
                try node.start()
            }
        }
    }

    /// Three put catalogs at the same time, each at any node, while nodes are killed.
    func catalogRace() throws {
        let cluster = try FaultCluster()
        try repeatFault(on: cluster) {
            $0.catalogWriters = 3
        } _: { _ in
            pauseRandomly(1, 3)
            try generator.pick(cluster.nodes).restart()
            count("kills")
        }
    }

    /// One node's clock is a day ahead, another's a day behind.
    func nodeClocks() throws {
        let library = try Self.libfaketime()
        let environments = ["+1d", "-1d"].map {
            [
                "LD_PRELOAD": library, "FAKETIME": $0, "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            ]
        }
        // Valid by every clock: two days before to 18 days after.
        let cluster = try FaultCluster(tokenAge: 2 * 86_400, environments: environments)
        try repeatFault(on: cluster) {
            $0.tokenLifetime = 20 * 86_400
        } _: { _ in
            pauseRandomly(1, 4)
            try generator.pick(cluster.nodes).restart()
            count("kills")
        }
    }
}
