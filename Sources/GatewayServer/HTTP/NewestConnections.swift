import NIOCore

/// The open connections of a plain port. Beyond the limit the newest one stays and an old one is
/// closed: new requests are served, however many idle connections were opened.
package final class NewestConnections: Sendable {
    private let connectionsMax: Int
    /// Oldest first; at most as many as the limit.
    private let open: NIOLoopBoundBox<[HTTPConnectionHandler]>

    /// - Parameter loop: The loop that serves all the connections.
    package init(_ connectionsMax: Int, on loop: any EventLoop) {
        self.connectionsMax = connectionsMax
        open = .makeBoxSendingValue([], eventLoop: loop)
    }

    func add(_ connection: HTTPConnectionHandler) {
        if open.value.count >= connectionsMax {
            // A connection with a response in flight is closed only if all have one.
            let index = open.value.firstIndex { !$0.isResponding } ?? 0
            open.value.remove(at: index).close()
        }
        open.value.append(connection)
    }

    func remove(_ connection: HTTPConnectionHandler) {
        open.value.removeAll { $0 === connection }
    }
}
