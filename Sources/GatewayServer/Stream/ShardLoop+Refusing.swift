import GatewayTLS
import NIOCore
import NIOHTTP1
import WidgetModel

extension ShardLoop {
    /// The name of a connection that is no stream.
    private static let refusedName = UInt64.max

    /// Ends a connection that was to become a stream, after an answer that says why it did not.
    func refuse(_ connection: TLSConnection, with problem: ProblemDetails) {
        loop.assertInEventLoop()
        guard let stream = connections.adopt(connection, name: Self.refusedName) else { return }
        var answer = problem.answer
        answer.head.headers.add(name: FieldName.connection, value: "close")
        answer.head.headers.add(name: FieldName.date, value: cursors.date())
        answer.http1(bodyBytesMax: .max).beginning.withUnsafeReadableBytes {
            connections.end(stream, farewell: $0)
        }
    }
}
