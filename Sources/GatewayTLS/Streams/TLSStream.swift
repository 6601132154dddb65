import COpenSSL
import Glibc
import NIOCore

/// A TLS connection that left its channel to be written to by the thousand: its keys and a socket,
/// nothing else. `TLSStreams` acts on it.
package final class TLSStream {
    /// Where it stands.
    enum Phase {
        /// Bytes are taken. To `closing` by `end`, or when the peer ends or breaks the connection.
        case open
        /// Our last record is on its way; waits for the peer's end or the deadline.
        case closing
        /// Keys and socket are gone.
        case closed
    }

    /// What makes its records and reads the peer's.
    enum Engine {
        /// Ours, with nothing but keys.
        case records(UnsafeMutablePointer<RecordLayer>)
        /// OpenSSL's object, where `RecordLayer` cannot go on.
        case openSSL(OpaquePointer)
    }

    /// Ciphertext that the kernel has not taken yet.
    struct Backlog {
        var bytes: [UInt8]
        var sent = 0
        /// How many of the bytes answer the peer's own demands.
        var answers = 0

        var left: Int { bytes.count - sent }
    }

    /// What the owner calls it.
    package let name: UInt64
    /// Gone in the phase `closed`.
    let engine: Engine
    // Sound: used on the loop only, and not once `free` has set the phase.
    let descriptor: Int32
    private let permit: ConnectionPermit?
    /// Its place among the streams of its loop.
    let place: UInt32
    var phase = Phase.open
    /// The watcher tells when the socket takes bytes again.
    var isWatchedForRoom = false
    var backlog: Backlog?
    /// For what its reader sends.
    var input: InputBudget
    /// Waits in the loop's queue of streams to be read.
    var isQueuedForReading = false
    /// Has an entry among the deadlines of incomplete records.
    var isRecordTimed = false
    /// Records of its reader that were read; wraps.
    var recordsRead: UInt32 = 0

    init(
        name: UInt64, engine: Engine, descriptor: Int32, permit: ConnectionPermit?, place: UInt32,
        now: NIODeadline
    ) {
        self.permit = permit
        input = InputBudget(now: now)
        self.name = name
        self.engine = engine
        self.descriptor = descriptor
        self.place = place
    }

    /// Ciphertext bytes that the kernel has not taken yet.
    package var queuedBytes: Int { backlog?.left ?? 0 }

    /// Whether OpenSSL's object is kept for it, with the memory that costs.
    package var keepsOpenSSL: Bool {
        if case .openSSL = engine { true } else { false }
    }

    /// The reader has begun a record whose rest has not come.
    var hasIncompleteRecord: Bool {
        guard phase == .open else { return false }
        return switch engine {
        case .records(let layer): !layer.pointee.partial.isEmpty
        case .openSSL(let ssl): SSL_has_pending(ssl) == 1
        }
    }

    func free() {
        guard phase != .closed else { return }
        phase = .closed
        backlog = nil
        switch engine {
        case .records(let layer): RecordLayer.free(layer)
        case .openSSL(let ssl): SSL_free(ssl)
        }
        Glibc.close(descriptor)
        permit?.release()
    }

    deinit { free() }
}

/// What became of bytes given to a stream.
package enum StreamWrite: Equatable, Sendable {
    /// The kernel has taken all of it.
    case sent
    /// It waits behind a full socket, in order; `onDrained` tells when nothing waits any more.
    case queued
    /// Nothing was taken and nothing will be sent: the stream is over, or its reader too far behind.
    case refused
}
