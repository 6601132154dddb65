import GatewayTLS
import NIOCore

/// Where connections that have arrived go: to a shard, if they came for an event stream that they
/// may have, and otherwise into a channel, where requests are answered. The event loops take turns.
///
/// There is one for each thread of the arrivals, and it is used on that thread: tokens are looked at
/// there, and what comes to an event loop is decided.
final class Entrance: Reception {
    /// An event stream that its reader may have.
    private struct Newcomer: Sendable {
        let connection: TLSConnection
        let admitted: StreamAdmission.Admitted
        /// How the answer begins.
        let head: [UInt8]
    }

    private let channels: GatewayChannel
    private let admission: StreamAdmission
    private let shards: [ShardLoop]
    private var turn: Int
    /// For each shard.
    private var newcomers: [[Newcomer]]

    init(_ channels: GatewayChannel) {
        (self.channels, admission) = (channels, channels.admission)
        shards = admission.loops.all
        newcomers = Array(repeating: [], count: shards.count)
        // Several threads must not take the same turns.
        turn = Int.random(in: shards.indices)
    }

    func take(_ arrived: Arrived) -> Bool {
        turn = (turn + 1) % shards.count
        guard let newcomer = stream(arrived) else {
            channels.start(arrived, on: shards[turn].loop)
            return false
        }
        newcomers[turn].append(newcomer)
        return true
    }

    func passOn() {
        for (index, shard) in shards.enumerated() where !newcomers[index].isEmpty {
            let newcomers = newcomers[index]
            self.newcomers[index] = []
            shard.loop.execute { [admission] in Self.open(newcomers, on: shard, admission) }
        }
    }

    /// The stream a connection asks for, if everything allows it; what stands in the way is for the
    /// route to say.
    private func stream(_ arrived: Arrived) -> Newcomer? {
        let connection = arrived.connection
        guard connection.negotiatedProtocol != "h2", let bytes = arrived.firstBytes,
            let request = FirstRequest.read(bytes, channels.settings), request.wantsStream,
            let admitted = try? admission.admit(
                request, from: nil, certificateURIs: { connection.peerCertificateURIs }),
            admitted.newClaims == nil, admission.admitStream(admitted.key)
        else { return nil }
        connection.becomeStream()
        return Newcomer(
            connection: connection, admitted: admitted,
            head: StreamHead(admission, admitted, from: admitted.cursor.point).http1)
    }

    /// Opens the streams on their loop, by the registrations in force there and then.
    private static func open(
        _ newcomers: [Newcomer], on shard: ShardLoop, _ admission: StreamAdmission
    ) {
        for one in newcomers {
            shard.whenReached(one.admitted.head, in: one.admitted.cursor.epoch) {
                do throws(ShardLoop.Failure) {
                    _ = try shard.open(one.admitted.opening) { point in
                        // Cursors may have been voided since.
                        let head =
                            point == one.admitted.cursor.point
                            ? one.head : StreamHead(admission, one.admitted, from: point).http1
                        return .connection(one.connection, head: head)
                    }
                } catch {
                    admission.registry.releaseStream(one.admitted.key)
                    if case .refused(let problem) = error {
                        shard.refuse(one.connection, with: problem)
                    }
                }
            }
        }
    }
}
