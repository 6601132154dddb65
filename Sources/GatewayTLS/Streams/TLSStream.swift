import COpenSSL
import Glibc
import NIOCore

/// A held stream of a TLS connection that left its channel: its keys and its socket. `TLSStreams`
/// acts on it.
///
/// Kept apart from `TLSServerHandler` for its memory: OpenSSL's object takes 13 kB, a channel with
/// its pipeline, buffers and handlers 6 kB. This takes 1.5 kB.
package final class TLSStream {
    enum Phase {
        /// Accepts bytes to send. To `closing` by `end`, or when the peer ends or breaks the
        /// connection.
        case open
        /// Our last record is being sent; waiting for the peer's end or the deadline.
        case closing
        /// Keys are freed and the socket is closed.
        case closed
    }

    /// The implementation that makes our records and reads the peer's.
    enum Engine {
        /// Our own, which holds little more than keys.
        case records(UnsafeMutablePointer<RecordLayer>)
        /// OpenSSL's object, for connections that `RecordLayer` cannot take over.
        case openSSL(OpaquePointer)
    }

    /// Ciphertext that the kernel has not accepted yet. An object, because few streams have any.
    final class Backlog {
        var bytes: [UInt8]
        var sent = 0
        /// The number of queued bytes that answer the peer's own requests.
        var answers = 0

        init(bytes: [UInt8]) { self.bytes = bytes }

        var left: Int { bytes.count - sent }
    }

    // In memory in this order: what a delivery needs lies together at the beginning.
    /// Freed in the phase `closed`.
    let engine: Engine
    var phase = Phase.open
    /// Whether the watcher reports when the socket accepts bytes again.
    var isWatchedForRoom = false
    /// Whether the stream is in the loop's queue of streams to read from.
    var isQueuedForReading = false
    // Sound: used on the loop only, and not once `free` has set the phase.
    let descriptor: Int32
    var backlog: Backlog?
    /// The owner's name for the stream.
    package let name: UInt64
    private let permit: ConnectionPermit?
    var input: InputBudget
    /// Its index among the places of its loop.
    let place: UInt32
    /// The number of its reader's records read so far; wraps.
    var recordsRead: UInt32 = 0
    /// Whether the stream has an entry among the deadlines of incomplete records.
    var isRecordTimed = false

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

    /// Ciphertext bytes that the kernel has not accepted yet.
    package var queuedBytes: Int { backlog?.left ?? 0 }

    /// Whether the stream keeps OpenSSL's object, with the memory that costs.
    package var keepsOpenSSL: Bool {
        if case .openSSL = engine { true } else { false }
    }

    /// Whether the reader has begun a record whose rest has not arrived.
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

/// The outcome of sending bytes to a stream.
package enum StreamWrite: Equatable, Sendable {
    /// The kernel has accepted all bytes.
    case sent
    /// Bytes wait, in order, for a full socket; the owner's `drained` is called when none wait any
    /// more.
    case queued
    /// Nothing was accepted and nothing will be sent: the stream has ended, or its reader is too
    /// far behind.
    case refused
}
