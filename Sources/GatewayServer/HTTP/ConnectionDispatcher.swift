import GatewayEngine
import GatewayTLS
import NIOCore
import NIOHTTP1

/// Dispatches accepted connections to the event loops, round robin: to a shard, if the first
/// request is admitted to an event stream, otherwise into a channel, in which routes respond.
///
/// Each accepting thread has its own, used on that thread only: tokens are verified there, so that
/// an event loop receives admitted event streams only.
final class ConnectionDispatcher: Reception {
    /// A connection whose event stream is admitted.
    private struct AdmittedConnection: Sendable {
        let connection: TLSConnection
        let admitted: StreamAdmission.Admitted
        /// The beginning of the response.
        let head: [UInt8]
    }

    private let channels: HTTPPipeline
    private let admission: StreamAdmission?
    private let shards: [ShardLoop]
    /// The index of the event loop that received the last connection.
    private var lastLoop: Int
    /// The connections to open, by shard.
    private var pending: [[AdmittedConnection]]

    init(_ channels: HTTPPipeline) {
        (self.channels, admission) = (channels, channels.admission)
        shards = admission?.engine.loops.all ?? []
        pending = Array(repeating: [], count: shards.count)
        // Several threads must not use the same order.
        lastLoop = Int.random(in: channels.loops.indices)
    }

    func take(_ arrived: Arrived) -> Bool {
        lastLoop = (lastLoop + 1) % channels.loops.count
        guard let connection = admittedStream(arrived) else {
            channels.start(arrived, on: channels.loops[lastLoop])
            return false
        }
        pending[lastLoop].append(connection)
        return true
    }

    func passOn() {
        guard let admission else { return }
        for (index, shard) in shards.enumerated() where !pending[index].isEmpty {
            let connections = pending[index]
            pending[index] = []
            shard.loop.execute { Self.open(connections, on: shard, admission) }
        }
    }

    /// Returns the event stream that a connection requests, if it is admitted; otherwise the route
    /// responds with the reason.
    private func admittedStream(_ arrived: Arrived) -> AdmittedConnection? {
        let connection = arrived.connection
        // A proxy's requests are counted by their own addresses, which only the decoder reads.
        guard let admission, connection.peer.proxyProtocol != .forwarded,
            connection.negotiatedProtocol != "h2", let bytes = arrived.firstBytes,
            let request = FirstRequest.read(bytes, channels.settings), request.wantsStream,
            let identified = try? admission.identify(
                request, from: nil, certificateURIs: { connection.peerCertificateURIs }),
            admission.isPrepared(identified), let admitted = try? admission.admit(identified),
            admitted.newClaims == nil, admission.hasRoom
        else { return nil }
        connection.becomeStream()
        return AdmittedConnection(
            connection: connection, admitted: admitted,
            head: EventStreamHead(admission, admitted, from: admitted.cursor.point).http1)
    }

    /// Returns the response to a request for a stream that is not opened; the connection ends after
    /// it.
    private static func rejection(_ error: EngineError, _ admission: StreamAdmission) -> ByteBuffer
    {
        var answer = Problem.engine(error).answer
        answer.head.headers.add(name: FieldName.connection, value: "close")
        answer.head.headers.add(name: FieldName.date, value: admission.date.text)
        // The decoder reads what a browser sends.
        answer.head.headers.add(contentsOf: admission.cors.fields(for: nil))
        return answer.http1(bodyBytesMax: .max).beginning
    }

    /// Opens the streams on their loop, by the registrations in force at that time.
    private static func open(
        _ connections: [AdmittedConnection], on shard: ShardLoop, _ admission: StreamAdmission
    ) {
        for one in connections {
            shard.whenReached(one.admitted.head, in: one.admitted.cursor.epoch) {
                do throws(ShardLoop.Failure) {
                    _ = try admission.open(one.admitted.opening, on: shard) { point in
                        // Cursors may have been voided in the meantime.
                        let head =
                            point == one.admitted.cursor.point
                            ? one.head : EventStreamHead(admission, one.admitted, from: point).http1
                        return .connection(one.connection, head: head)
                    }
                } catch {
                    if case .refused(let error) = error {
                        shard.end(one.connection, after: rejection(error, admission))
                    }
                }
            }
        }
    }
}
