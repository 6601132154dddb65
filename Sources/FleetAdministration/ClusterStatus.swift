import GatewayFleet
import WidgetModel

/// The state of a cluster's database, without payloads.
package struct ClusterStatus: Sendable, Equatable {
    package struct Node: Sendable, Equatable {
        package var number: Int64
        package var login: String
        /// Its URL; `nil` if it has none.
        package var url: String?
        /// Its generation: the connections that it has made anew.
        package var generation: Int64
        /// The seconds that its lease still runs, negative once it has run out; `nil` if it never had
        /// one.
        package var leaseSeconds: Double?
        /// Whether it wants partitions.
        package var serves: Bool
        /// The partitions of clients that it owns.
        package var partitions: Int64
        /// Its other leases: `snapshot`, `retention`.
        package var leases: [String]
        /// The position from which it keeps the log; `nil` for none.
        package var reservation: Int64?
        /// The newest digest of its version windows; `nil` if it has reported none.
        package var window: WindowDigest?
    }

    /// A standby that follows the primary.
    package struct Standby: Sendable, Equatable {
        package init(name: String?, mode: String?) {
            self.name = name
            self.mode = mode
        }

        /// Its name; `nil` where the role may not see it.
        package var name: String?
        /// `sync`, `quorum`, `potential` or `async`; `nil` where the role may not see it.
        package var mode: String?
    }

    /// A session that holds the lock of the log.
    package struct LockHolder: Sendable, Equatable {
        package init(process: Int64, login: String, seconds: Double?, waitsForStandby: Bool) {
            self.process = process
            self.login = login
            self.seconds = seconds
            self.waitsForStandby = waitsForStandby
        }

        /// The server's process.
        package var process: Int64
        package var login: String
        /// The seconds since its transaction began; `nil` where the role may not see it.
        package var seconds: Double?
        /// Whether it waits for a standby; it ends when one is back.
        package var waitsForStandby: Bool
    }

    package struct Snapshot: Sendable, Equatable {
        package var position: Int64
        package var node: Int64
        /// Its age in seconds.
        package var age: Double
    }

    package var version: Int64
    package var log: String
    /// Whether the log is closed to writes, because it moves or moved.
    package var isClosed: Bool
    /// The last sequence.
    package var head: Int64
    /// The chain of the head, in hexadecimal.
    package var chain: String
    /// The slices that exist behind that of the head; two are right.
    package var slicesAhead: Int64
    /// The first position that the log still has.
    package var floor: Int64
    /// The newest snapshot.
    package var snapshot: Snapshot?
    /// The nodes in the order of their numbers.
    package var nodes: [Node]
    /// The partitions of clients that no node owns.
    package var unowned: Int64
    /// `synchronous_standby_names`; empty when no commit waits for a standby.
    package var standbyNames: String
    /// Whether `fsync` and `full_page_writes` are on.
    package var isSafe: Bool
    package var standbys: [Standby]
    /// The sessions that hold the lock.
    package var lockHolders: [LockHolder]

    package init(
        version: Int64, log: String, isClosed: Bool, head: Int64, chain: String,
        slicesAhead: Int64, floor: Int64, snapshot: Snapshot?, nodes: [Node], unowned: Int64,
        standbyNames: String, isSafe: Bool, standbys: [Standby], lockHolders: [LockHolder]
    ) {
        self.version = version
        self.log = log
        self.isClosed = isClosed
        self.head = head
        self.chain = chain
        self.slicesAhead = slicesAhead
        self.floor = floor
        self.snapshot = snapshot
        self.nodes = nodes
        self.unowned = unowned
        self.standbyNames = standbyNames
        self.isSafe = isSafe
        self.standbys = standbys
        self.lockHolders = lockHolders
    }

    /// The time after which a lock that does not wait for a standby is a fault, seconds.
    private static let lockSecondsMax = 2.0

    /// The advice for an operator, most urgent first.
    package var advice: [String] {
        var lines: [String] = []
        if !isSafe { lines.append("fsync or full_page_writes is off; set both to on") }
        if isClosed { lines.append("the log is closed: it moves, or moved, to another store") }
        for holder in lockHolders where !holder.waitsForStandby {
            guard let seconds = holder.seconds, seconds > Self.lockSecondsMax else { continue }
            lines.append(
                "process \(holder.process) of \(holder.login) holds the log's lock for"
                    + " \(Int(seconds)) s; end it: SELECT pg_terminate_backend(\(holder.process))")
        }
        if lockHolders.contains(where: \.waitsForStandby), standbys.isEmpty {
            lines.append("an append waits for a standby and none is connected; start one")
        }
        let digests = nodes.compactMap { node in node.window.map { (node.number, $0) } }
        for (one, other, position) in WindowDigest.differing(digests) {
            lines.append(
                "nodes \(one) and \(other) have different versions at \(position); restart both,"
                    + " one after the other, and report it")
        }
        if slicesAhead < 2 {
            lines.append(
                "\(slicesAhead) of 2 slices ahead exist; start a node, which makes them, or run:"
                    + " SELECT tg.slice()")
        }
        if standbys.contains(where: { $0.mode == nil }) {
            lines.append("standbys are not shown; run: GRANT pg_read_all_stats TO tg_observer")
        }
        return lines
    }
}
