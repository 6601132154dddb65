/// The division of a process's file descriptors between client connections and everything else, so
/// that no number of clients takes the descriptors that the process itself cannot do without.
///
/// libdispatch, for one, ends the process when it gets none for its own bookkeeping.
package struct DescriptorBudget: Equatable, Sendable {
    /// The users of descriptors beside client connections.
    package struct Needs: Equatable, Sendable {
        /// Event loops of clients; there are as many threads that accept, and watchers of streams.
        package var threads: Int
        /// The most connections that each port for operators or probes may have.
        package var operatorPorts: [Int]
        /// The most connections to webhooks; 0 without webhooks.
        package var webhooks: Int
        /// Apps that are pushed to through APNs.
        package var apnsApps: Int

        package init(threads: Int, operatorPorts: [Int], webhooks: Int, apnsApps: Int) {
            self.threads = threads
            self.operatorPorts = operatorPorts
            self.webhooks = webhooks
            self.apnsApps = apnsApps
        }
    }

    /// The fewest client connections that are worth a start.
    package static let connectionsMin = 16
    /// Database, log, standard streams, listening sockets, a collector of traces, libdispatch, name
    /// lookups, files that are read now and then, and connections that a port accepts only to close
    /// another one.
    private static let base = 64
    /// epoll, eventfd and timerfd of an event loop; epoll and eventfd of a thread that accepts and of
    /// a watcher; a connection that is on its way from one to the other.
    private static let perThread = 10
    /// Connections to APNs, old and new ones, and the descriptors of libcurl's own loop.
    private static let perAPNsApp = 12

    /// Client connections that may be open, event streams included.
    package let connections: Int
    /// The most connections of each operator port, in the order of the needs.
    package let operatorPorts: [Int]
    /// Connections to webhooks that may be open.
    package let webhooks: Int
    /// Descriptors kept for everything but client connections.
    package let reserve: Int

    /// Divides `limit` descriptors. Ports of operators and webhooks get at most an eighth each.
    ///
    /// - Parameter connections: The client connections wanted.
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
