import GatewayTLS
import NIOCore
import Synchronization

/// Where connections that have arrived go: to a shard, if they came for an event stream that they
/// may have, and otherwise into a channel, where requests are answered. The event loops take turns.
final class Entrance: Sendable {
    /// An event stream that its reader may have.
    private struct Newcomer: Sendable {
        let connection: TLSConnection
        let admitted: StreamAdmission.Admitted
        /// How the answer begins.
        let head: [UInt8]
    }

    private let channels: GatewayChannel
    private let admission: StreamAdmission
    private let turn = Atomic<Int>(0)

    init(_ channels: GatewayChannel, _ admission: StreamAdmission) {
        (self.channels, self.admission) = (channels, admission)
    }

    /// Takes connections. May be called on any thread, and looks at tokens there: what comes to the
    /// event loop is decided.
    func take(_ arrived: [Arrived]) {
        let shards = admission.loops.all
        var streams = Array(repeating: [Newcomer](), count: shards.count)
        for one in arrived {
            let index = turn.wrappingAdd(1, ordering: .relaxed).oldValue % shards.count
            if let newcomer = stream(one) {
                streams[index].append(newcomer)
            } else {
                channels.start(one, on: shards[index].loop)
            }
        }
        for (shard, newcomers) in zip(shards, streams) where !newcomers.isEmpty {
            shard.loop.execute { self.open(newcomers, on: shard) }
        }
    }

    /// The stream a connection asks for, if everything allows it; what stands in the way is for the
    /// route to say.
    private func stream(_ arrived: Arrived) -> Newcomer? {
        let connection = arrived.connection
        guard connection.negotiatedProtocol != "h2", let bytes = arrived.firstBytes,
            let request = FirstRequest.read(bytes, channels.settings), request.wantsStream,
            let admitted = try? admission.admit(
                request, certificateURIs: { connection.peerCertificateURIs }),
            admission.admitStream(admitted.key)
        else { return nil }
        connection.becomeStream()
        return Newcomer(
            connection: connection, admitted: admitted,
            head: StreamHead(admission, admitted).http1)
    }

    private func open(_ newcomers: [Newcomer], on shard: ShardLoop) {
        for one in newcomers {
            shard.whenReached(one.admitted.head) {
                let carrier = ShardLoop.Carrier.connection(one.connection, head: one.head)
                if shard.open(one.admitted.opening, on: carrier) == nil {
                    self.admission.registry.releaseStream(one.admitted.key)
                }
            }
        }
    }
}
