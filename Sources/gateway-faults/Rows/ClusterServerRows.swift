import ClusterTestSupport
import Foundation
import GatewayTestSupport

/// Faults of the servers of a cluster, and of the ways to them.
extension RowContext {
    /// The primary loses power and comes back.
    func primaryKilled() throws {
        let cluster = try FaultCluster()
        try repeatFault(on: cluster) { campaign in
            pauseRandomly(0.5, 3)
            try cluster.servers.primary.crash()
            pauseRandomly(0, 2)
            try cluster.servers.primary.start()
            count("crashes")
            reportMost("slowest recovery", seconds: campaign.awaitAcceptance())
        }
    }

    /// The primary is lost and its standby takes its place; in some rounds the primary was back for a
    /// while without its standby, with batches that only it had.
    func failOver() throws {
        let cluster = try FaultCluster(hasQuorum: true)
        var pauses: [Double] = []
        try repeatFault(on: cluster) { campaign in
            pauseRandomly(1, 4)
            let start = campaign.recorder.now
            if generator.happens(30), let standby = cluster.servers.standby {
                standby.pause()
                pauseRandomly(0.5, 2)
                try cluster.servers.primary.crash()
                try cluster.servers.primary.start()
                pauseRandomly(0.5, 3)
                try cluster.servers.primary.crash()
                standby.resume()
            }
            try cluster.servers.failOver()
            _ = campaign.awaitAcceptance()
            pauses.append(campaign.recorder.now - start)
        }
        pauses.sort()
        report("fail-overs", pauses.count)
        report("median seconds until a post is accepted", seconds: pauses[pauses.count / 2])
        report("most", seconds: pauses[pauses.count - 1])
    }

    /// The standby that commits wait for goes away, and in some rounds the setting is emptied
    /// meanwhile.
    func quorumLost() throws {
        let cluster = try FaultCluster(hasQuorum: true)
        guard let standby = cluster.servers.standby else { return }
        try repeatFault(on: cluster) { campaign in
            pauseRandomly(0.5, 2)
            standby.pause()
            pauseRandomly(0.5, 5)
            let isEmptied = generator.happens(40)
            if isEmptied {
                try cluster.servers.setQuorum(false)
                pauseRandomly(0.2, 2)
            }
            standby.resume()
            if isEmptied { try cluster.servers.setQuorum(true) }
            count("losses")
            count("settings emptied", isEmptied ? 1 : 0)
            _ = campaign.awaitAcceptance()
        }
    }

    /// The connections of nodes are cut at any byte, in each direction, or are silent for seconds.
    func connectionsCut() throws {
        let cluster = try FaultCluster(hasProxies: true)
        try repeatFault(on: cluster) { _ in
            pauseRandomly(0.1, 0.8)
            let proxy = generator.pick(cluster.proxies)
            let isSilent = generator.happens(15)
            count("cuts", isSilent ? 0 : 1)
            count("silences", isSilent ? 1 : 0)
            if isSilent {
                proxy.silence()
                pauseRandomly(0.5, 6)
                proxy.resume()
            } else {
                let direction = generator.pick(ServerProxy.Direction.allCases)
                proxy.cut(after: generator.below(generator.happens(50) ? 400 : 8_000), direction)
            }
        }
    }

    /// The server stops for seconds without closing anything, and goes on.
    func serverSilent() throws {
        let cluster = try FaultCluster()
        try repeatFault(on: cluster) { campaign in
            pauseRandomly(0.5, 2)
            cluster.servers.primary.pause()
            pauseRandomly(0.2, 5)
            cluster.servers.primary.resume()
            count("stops")
            _ = campaign.awaitAcceptance()
        }
    }

    /// An older copy of the database is put in its place: what came after it is lost. In some runs no
    /// node was there to notice, and in some of these their directories are lost, too, so that only
    /// cursors of clients show it.
    func databaseRestored() throws {
        let cluster = try FaultCluster()
        let story = try LogLossStory(self, cluster.servers, of: cluster)
        let recorder = story.campaign.recorder
        let copy = try story.fallBehind()
        let isNoticed = generator.happens(40)
        let keepsDirectories = isNoticed || generator.happens(50)
        if !isNoticed { for node in cluster.nodes { node.kill() } }
        try cluster.servers.primary.crash()
        try cluster.servers.replace(by: copy)
        story.campaign.expectLostLog()
        try cluster.servers.primary.start()
        for (index, node) in cluster.nodes.enumerated() {
            // A node that notices cannot take back what it told; its service manager starts it again.
            if isNoticed {
                recorder.require(
                    node.waitForExit() == .status(1),
                    "node \(index + 1) did not notice that the end of the log was lost")
            }
            if !keepsDirectories { try FileManager.default.removeItem(atPath: node.data) }
            try node.start()
        }
        story.campaign.listen(story.near, &generator)
        pauseRandomly(0.5, 3)
        story.campaign.listen(story.far, &generator)
        pause(seconds: 1)
        try story.campaign.settle()
        try cluster.judge(recorder)
        report("clients with cursors that were lost", story.far.count)
        report(
            "noticed by",
            isNoticed ? "nodes that ran" : keepsDirectories ? "nodes at their start" : "cursors")
    }

    /// A transaction with an old snapshot stays open for the whole run.
    func oldSnapshot() throws {
        let cluster = try FaultCluster()
        try ClusterTables(cluster.servers).hold {
            try repeatFault(on: cluster) { _ in pause(seconds: 1) }
        }
    }
}
