import CLinux
import COpenSSL
import Glibc
import NIOCore

/// A connection that has been accepted, up to its first request.
final class PendingConnection {
    /// The phase of an accepted connection.
    enum Phase {
        /// Reading the header of a proxy that is trusted to send one. To `handshaking` when it is
        /// whole; the connection is dropped when it is invalid, or at the deadline of the handshake.
        case proxyHeader
        /// The handshake is in progress. To `open` when it is done, to `closing` when it fails; the
        /// connection is dropped at the deadline.
        case handshaking
        /// Waiting for the peer's first bytes. To `closing` when the peer sends `close_notify` or
        /// ends its side, or at the deadline.
        case open
        /// Our last record is being sent; waiting for the peer's end or the deadline.
        case closing
    }

    let connection: TLSConnection
    /// Its token among the places of its loop.
    let token: UInt64
    var phase: Phase
    /// The deadline of the current phase.
    var deadline: NIODeadline
    /// The part of a proxy's header that has arrived, at most `ProxyHeader.bytesMax` bytes.
    var header: [UInt8] = []
    /// Ciphertext that the kernel has not accepted yet. The socket is not read meanwhile, so its
    /// size is bounded by the answer to a single read.
    var unsent: [UInt8] = []
    /// The read to hand on with the connection once the kernel has accepted all of `unsent`.
    var first: ReadPass?
    var input: InputBudget

    init(
        _ connection: TLSConnection, token: UInt64, deadline: NIODeadline, now: NIODeadline
    ) {
        (self.connection, self.token, self.deadline) = (connection, token, deadline)
        phase = connection.peer.proxyProtocol == .proxyV2 ? .proxyHeader : .handshaking
        input = InputBudget(now: now)
    }

    /// Whether the handshake has neither been completed nor failed.
    var isBeforeOpen: Bool { phase == .proxyHeader || phase == .handshaking }
}

/// Reading from peers, and answering them.
extension AcceptorLoop {
    /// Handles a socket that has bytes to read or has ended.
    func receive(_ arrival: PendingConnection) {
        let count = recv(arrival.connection.socket, input.baseAddress, input.count, 0)
        guard count > 0 else {
            if count < 0, errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR { return }
            if arrival.isBeforeOpen { counters.failed(.other) }
            // The peer may still be reading; our `close_notify` tells it that nothing was cut off.
            if count == 0, arrival.phase == .open { return sayGoodbye(arrival) }
            return forget(arrival)
        }
        guard arrival.input.spend(count, settings.arrivalInput, now: now) else {
            if arrival.isBeforeOpen {
                noteFailure(of: arrival, .other, "the peer sent too much")
            } else if arrival.phase == .open {
                let error = TLSError(
                    .protocolViolation(.emptyRecords), "the peer sent too much before a request")
                settings.report(error, of: arrival.connection.peer.address, to: counters)
            }
            return forget(arrival)
        }
        // After our `close_notify` only the peer's end matters; its input is discarded.
        guard arrival.phase != .closing else { return }
        let bytes = UnsafeRawBufferPointer(rebasing: input[..<count])
        if arrival.phase == .proxyHeader {
            readHeader(arrival, bytes)
        } else {
            advance(arrival, bytes)
        }
    }

    /// Reads the header of a proxy, then the bytes that follow it.
    private func readHeader(_ arrival: PendingConnection, _ bytes: UnsafeRawBufferPointer) {
        guard arrival.header.isEmpty else {
            let all = arrival.header + bytes
            arrival.header = []
            return all.withUnsafeBytes { readHeader(arrival, $0) }
        }
        switch ProxyHeader.read(bytes) {
        case .incomplete: arrival.header = Array(bytes)
        case .invalid(let fault):
            noteFailure(of: arrival, .other, fault.rawValue)
            forget(arrival)
        case .complete(let header):
            let connection = arrival.connection
            let client = header.client ?? connection.peer.address
            guard connection.count(for: client) else {
                refuse(.address, client)
                return forget(arrival)
            }
            arrival.phase = .handshaking
            let rest = UnsafeRawBufferPointer(rebasing: bytes[header.byteCount...])
            if !rest.isEmpty { advance(arrival, rest) }
        }
    }

    private func advance(_ arrival: PendingConnection, _ bytes: UnsafeRawBufferPointer) {
        let connection = arrival.connection
        guard let ssl = connection.ssl else { return forget(arrival) }
        var pass = ReadPass()
        var isOpen = arrival.phase == .open
        let units = arrival.input.available(settings.arrivalInput, now: now)
        wire.begin(input: bytes, units: units)
        if !isOpen { isOpen = pass.handshake(ssl) }
        if isOpen { pass.decrypt(ssl, wire, ByteBufferAllocator()) }
        let isSent =
            pass.refusal.isEmpty
            ? send(wire.output, arrival) : pass.refusal.withUnsafeBytes { send($0, arrival) }
        arrival.input.settle(units - wire.unitsLeft)
        wire.finish()
        guard isSent else {
            if arrival.phase == .handshaking { counters.failed(.other) }
            return forget(arrival)
        }
        if isOpen, arrival.phase == .handshaking { becomeOpen(arrival) }
        switch pass.end {
        case .failed(let error):
            if case .handshakeFailed(let failure) = error.code {
                let reason =
                    ProxyHeader.isLikely(in: bytes)
                    ? "the peer sent a PROXY header, but is no proxy that is trusted to send one"
                    : error.message
                noteFailure(of: arrival, failure, reason)
            }
            settings.report(error, of: connection.peer.address, to: counters)
            beginClosing(arrival)
        case .closeNotify where pass.plaintext == nil:
            sayGoodbye(arrival)
        case .closeNotify, nil:
            guard isOpen, pass.plaintext != nil || !waits(connection.negotiatedProtocol) else {
                return
            }
            if arrival.unsent.isEmpty { handOn(arrival, pass) } else { arrival.first = pass }
        }
    }

    /// Counts and reports a handshake that failed.
    func noteFailure(
        of arrival: PendingConnection, _ failure: HandshakeFailure, _ reason: String
    ) {
        counters.failed(failure)
        settings.onHandshakeFailure?(arrival.connection.peer.address, failure, reason)
    }

    private func becomeOpen(_ arrival: PendingConnection) {
        arrival.connection.becomeOpen()
        counters.done(resumed: arrival.connection.isResumed)
        arrival.phase = .open
        arrival.deadline = requests.set(arrival.token, now: now)
    }

    // MARK: Sending

    /// Writes bytes to the socket and keeps those that the kernel does not accept. Returns whether
    /// the connection is still usable.
    private func send(_ bytes: UnsafeRawBufferPointer, _ arrival: PendingConnection) -> Bool {
        guard !bytes.isEmpty else { return true }
        let socket = arrival.connection.socket
        let sent = arrival.unsent.isEmpty ? TLSStreams.give(bytes, to: socket) : 0
        guard sent >= 0 else { return false }
        TLSLoopCounters.add(sent, to: counters.direct)
        guard sent < bytes.count else { return true }
        arrival.unsent.append(contentsOf: bytes[sent...])
        return poller.modify(socket, for: EPOLLOUT.rawValue, token: arrival.token)
    }

    /// Sends unsent bytes when the socket is writable again.
    func sendRest(_ arrival: PendingConnection) {
        let socket = arrival.connection.socket
        let sent = arrival.unsent.withUnsafeBytes { TLSStreams.give($0, to: socket) }
        guard sent >= 0 else { return forget(arrival) }
        TLSLoopCounters.add(sent, to: counters.direct)
        arrival.unsent.removeFirst(sent)
        guard arrival.unsent.isEmpty else { return }
        if arrival.phase == .closing { shutdown(socket, Int32(SHUT_WR)) }
        if let first = arrival.first {
            handOn(arrival, first)
        } else if !poller.modify(socket, for: EPOLLIN.rawValue, token: arrival.token) {
            forget(arrival)
        }
    }

    // MARK: Closing

    /// Sends `close_notify` and waits for the peer's end.
    func sayGoodbye(_ arrival: PendingConnection) {
        guard let ssl = arrival.connection.ssl else { return forget(arrival) }
        ERR_clear_error()
        wire.begin()
        SSL_shutdown(ssl)
        let isSent = send(wire.output, arrival)
        wire.finish()
        if isSent { beginClosing(arrival) } else { forget(arrival) }
    }

    /// Ends our side once our last record is queued. The socket closes when the peer has ended its
    /// side: closing it at once could destroy bytes in flight, because the kernel answers unread
    /// input with a reset.
    private func beginClosing(_ arrival: PendingConnection) {
        arrival.phase = .closing
        arrival.first = nil
        arrival.deadline = closings.set(arrival.token, now: now)
        if arrival.unsent.isEmpty { shutdown(arrival.connection.socket, Int32(SHUT_WR)) }
    }
}
