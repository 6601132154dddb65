import CLinux
import COpenSSL
import Glibc
import NIOCore

/// A connection that has not shown yet what it is for.
struct Arrival {
    /// Where it stands.
    enum Phase {
        /// To `open` when the handshake is done, to `closing` when it fails; ends at its deadline.
        case handshaking
        /// Waits for the peer's first bytes. To `closing` by the peer's goodbye, the end of its
        /// side, or the deadline.
        case open
        /// Our last record is on its way; waits for the peer's end or the deadline.
        case closing
    }

    let connection: TLSConnection
    var phase = Phase.handshaking
    /// When the phase has to be over.
    var deadline: NIODeadline
    /// Ciphertext that the kernel has not taken yet. Nothing is read meanwhile, so that it is
    /// bounded by what one read can call for.
    var unsent: [UInt8] = []
    /// What is to be handed on once the kernel has taken all.
    var first: ReadPass?
    /// For what the peer sends.
    var input: InputBudget

    init(_ connection: TLSConnection, deadline: NIODeadline, now: NIODeadline) {
        (self.connection, self.deadline) = (connection, deadline)
        input = InputBudget(now: now)
    }
}

/// What the peers say, and are answered.
extension ArrivalLoop {
    /// The socket has bytes, or has ended.
    func receive(_ token: Token) {
        guard let arrival = places[Int(token.place)].arrival else { return }
        let count = recv(arrival.connection.socket, input.baseAddress, input.count, 0)
        guard count > 0 else {
            if count < 0, errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR { return }
            if arrival.phase == .handshaking { counters.failed(.other) }
            // It may read on, and know by our goodbye that nothing was cut off.
            if count == 0, arrival.phase == .open { return sayGoodbye(token) }
            return forget(token)
        }
        let isWithinBudget =
            places[Int(token.place)].arrival?.input
            .spend(count, settings.arrivalInput, now: now) ?? false
        guard isWithinBudget else {
            if arrival.phase == .handshaking { counters.failed(.other) }
            return forget(token)
        }
        // Once we have said goodbye, only the end itself is waited for.
        guard arrival.phase != .closing else { return }
        advance(token, arrival, UnsafeRawBufferPointer(rebasing: input[..<count]))
    }

    private func advance(_ token: Token, _ arrival: Arrival, _ bytes: UnsafeRawBufferPointer) {
        let connection = arrival.connection
        guard let ssl = connection.ssl else { return forget(token) }
        var pass = ReadPass()
        var isOpen = arrival.phase == .open
        wire.begin(input: bytes)
        if !isOpen { isOpen = pass.handshake(ssl) }
        if isOpen { pass.decrypt(ssl, wire, ByteBufferAllocator()) }
        let isSent =
            pass.refusal.isEmpty
            ? send(wire.output, token) : pass.refusal.withUnsafeBytes { send($0, token) }
        wire.finish()
        guard isSent else {
            if arrival.phase == .handshaking { counters.failed(.other) }
            return forget(token)
        }
        if isOpen, arrival.phase == .handshaking { becomeOpen(token, connection) }
        switch pass.end {
        case .failed(let error):
            if case .handshakeFailed(let reason) = error.code { counters.failed(reason) }
            beginClosing(token)
        case .closeNotify where pass.plaintext == nil:
            sayGoodbye(token)
        case .closeNotify, nil:
            guard isOpen, pass.plaintext != nil || !waits(connection.negotiatedProtocol) else {
                return
            }
            if places[Int(token.place)].arrival?.unsent.isEmpty ?? true {
                handOn(token, pass)
            } else {
                places[Int(token.place)].arrival?.first = pass
            }
        }
    }

    private func becomeOpen(_ token: Token, _ connection: TLSConnection) {
        connection.becomeOpen()
        counters.done(resumed: connection.isResumed)
        places[Int(token.place)].arrival?.phase = .open
        places[Int(token.place)].arrival?.deadline = requests.set(token, now: now)
    }

    // MARK: Sending

    /// Gives bytes to the kernel and keeps what it does not take; answers whether the connection
    /// lives.
    private func send(_ bytes: UnsafeRawBufferPointer, _ token: Token) -> Bool {
        guard !bytes.isEmpty, let arrival = places[Int(token.place)].arrival else { return true }
        let socket = arrival.connection.socket
        let sent = arrival.unsent.isEmpty ? TLSStreams.give(bytes, to: socket) : 0
        guard sent >= 0 else { return false }
        TLSLoopCounters.add(sent, to: counters.direct)
        guard sent < bytes.count else { return true }
        places[Int(token.place)].arrival?.unsent.append(contentsOf: bytes[sent...])
        return watch(EPOLL_CTL_MOD, socket, EPOLLOUT.rawValue, token)
    }

    /// The socket takes bytes again.
    func sendRest(_ token: Token) {
        guard let arrival = places[Int(token.place)].arrival else { return }
        let socket = arrival.connection.socket
        let sent = arrival.unsent.withUnsafeBytes { TLSStreams.give($0, to: socket) }
        guard sent >= 0 else { return forget(token) }
        TLSLoopCounters.add(sent, to: counters.direct)
        places[Int(token.place)].arrival?.unsent.removeFirst(sent)
        guard sent == arrival.unsent.count else { return }
        if arrival.phase == .closing { shutdown(socket, Int32(SHUT_WR)) }
        if let first = arrival.first {
            handOn(token, first)
        } else if !watch(EPOLL_CTL_MOD, socket, EPOLLIN.rawValue, token) {
            forget(token)
        }
    }

    // MARK: Closing

    /// Says `close_notify` and waits for the peer's end.
    func sayGoodbye(_ token: Token) {
        guard let ssl = places[Int(token.place)].arrival?.connection.ssl else {
            return forget(token)
        }
        ERR_clear_error()
        wire.begin()
        SSL_shutdown(ssl)
        let isSent = send(wire.output, token)
        wire.finish()
        if isSent { beginClosing(token) } else { forget(token) }
    }

    /// All we had to say is said. The socket closes when the peer has ended its side: closing it at
    /// once could destroy what is under way, because the kernel answers unread input with a reset.
    private func beginClosing(_ token: Token) {
        guard let arrival = places[Int(token.place)].arrival else { return }
        places[Int(token.place)].arrival?.phase = .closing
        places[Int(token.place)].arrival?.first = nil
        places[Int(token.place)].arrival?.deadline = closings.set(token, now: now)
        if arrival.unsent.isEmpty { shutdown(arrival.connection.socket, Int32(SHUT_WR)) }
    }
}
