import GatewayTLS
import NIOCore

extension ShardLoop {
    /// The name of a connection that is no stream.
    private static let refusedName = UInt64.max

    /// Ends a connection that was to become a stream, after a response that states why it did not.
    ///
    /// - Parameter answer: The complete response.
    package func end(_ connection: TLSConnection, after answer: ByteBuffer) {
        loop.assertInEventLoop()
        guard let stream = connections.adopt(connection, name: Self.refusedName) else { return }
        answer.withUnsafeReadableBytes { connections.end(stream, farewell: $0) }
    }
}
