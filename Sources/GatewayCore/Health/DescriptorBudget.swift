/// Divides a process's file descriptors between client connections and everything else, so that
/// clients cannot exhaust the descriptors that the process itself needs.
///
/// libdispatch, for example, aborts the process when it cannot get a descriptor for its own
/// bookkeeping.
package struct DescriptorBudget: Equatable, Sendable {
    /// The users of descriptors other than client connections.
    package struct Needs: Equatable, Sendable {
        /// The number of client event loops; there are equally many acceptor threads and stream
        /// watchers.
        package var threads: Int
        /// The maximum number of connections for each port for operators or probes.
        package var operatorPorts: [Int]
        /// The maximum number of connections to webhooks and push services but APNs; 0 without any.
        package var webhooks: Int
        /// The number of apps with pushes through APNs.
        package var apnsApps: Int

        package init(threads: Int, operatorPorts: [Int], webhooks: Int, apnsApps: Int) {
            self.threads = threads
            self.operatorPorts = operatorPorts
            self.webhooks = webhooks
            self.apnsApps = apnsApps
        }
    }

    /// The smallest useful number of client connections.
    package static let connectionsMin = 16
    /// The descriptors for the database, log, standard streams, listening sockets, trace collector,
    /// libdispatch, name lookups, files read occasionally, and connections that are accepted only
    /// to close another one.
    private static let base = 64
    /// The descriptors per event loop: its epoll, eventfd and timerfd; epoll and eventfd of its
    /// acceptor thread and of its watcher; and a connection in transit between them.
    private static let perThread = 10
    /// The descriptors per app for APNs: old and new connections, libcurl's own loop, and 16
    /// connections to sources of content.
    private static let perAPNsApp = 28

    /// The maximum number of client connections, event streams included.
    package let connections: Int
    /// The maximum number of connections for each operator port, in the order of the needs.
    package let operatorPorts: [Int]
    /// The maximum number of connections to webhooks and push services but APNs.
    package let webhooks: Int
    /// The descriptors reserved for everything except client connections.
    package let reserve: Int

    /// Divides `limit` descriptors. Each operator port, and webhooks, get at most an eighth.
    ///
    /// - Parameter connections: The desired number of client connections.
    /// - Returns: `nil` when too few are left for any service.
    package init?(limit: Int, connections: Int, needs: Needs) {
        let share = max(4, limit / 8)
        operatorPorts = needs.operatorPorts.map { min($0, share) }
        webhooks = min(needs.webhooks, share)
        reserve =
            Self.base + Self.perThread * needs.threads + operatorPorts.reduce(0, +) + webhooks
            + Self.perAPNsApp * needs.apnsApps
        let left = limit - reserve
        guard left >= min(connections, Self.connectionsMin) else { return nil }
        self.connections = min(connections, left)
    }
}
