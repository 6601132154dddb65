import CLinux
import COpenSSL
import Foundation
import Glibc
import NIOCore

/// One thread that accepts connections and performs TLS handshakes. Everything but its handle is
/// used on that thread only.
final class AcceptorLoop {
    /// The part of the loop that other threads may use.
    final class Handle: Sendable {
        fileprivate let wake: Int32

        fileprivate init(wake: Int32) { self.wake = wake }

        /// Begins to stop the loop; a second call has no effect.
        func stop() { eventfd_write(wake, 1) }

        deinit { Glibc.close(wake) }
    }

    /// Identifies one connection: the index of its place, and the place's serial number at the
    /// time.
    struct Token: Equatable {
        let place: UInt32
        let serial: UInt32
    }

    struct Place {
        var arrival: PendingConnection?
        /// Grows with each connection that leaves the place: an event may belong to the previous
        /// one.
        var serial: UInt32 = 0
    }

    /// Cannot be a connection's token: place numbers never get that high.
    private static let listenToken = UInt64.max
    private static let wakeToken = UInt64.max - 1
    private static let eventsMax = 256
    /// The most connections accepted per event; other threads may accept the rest of the queue.
    private static let acceptedMax = 16
    /// The time from the first connection that `passOn` has to be called for to that call.
    private static let gatheringTime = TimeAmount.milliseconds(5)
    /// The pause before trying again to accept, when no more connections fit.
    private static let fullPause = TimeAmount.milliseconds(20)

    private let poll: Int32
    private let handle: Handle
    private let identity: TLSIdentity
    private let limit: ConnectionLimit
    let waits: @Sendable (String?) -> Bool
    private let reception: any Reception
    let settings: TLSServerSettings
    let wire: MemoryBIO
    let counters: TLSLoopCounters
    /// `nil` once stopping has begun.
    private var listening: ListeningSocket?
    private var isAccepting = false
    private var acceptsAgain = NIODeadline.distantPast
    var places: [Place] = []
    private var freePlaces: [UInt32] = []
    private var count = 0
    /// The time at which `passOn` is due on the reception; `nil` when it has nothing to pass on.
    private var passingDue: NIODeadline?
    /// The time of the last return from `epoll_wait`.
    var now = NIODeadline.now()
    var handshakes: ExpiryQueue<Token>
    var requests: ExpiryQueue<Token>
    var closings: ExpiryQueue<Token>
    /// The buffer that sockets are read into.
    let input = UnsafeMutableRawBufferPointer.allocate(
        byteCount: MemoryBIO.recordContentBytesMax, alignment: 16)
    // Sound: allocated for the life of this object; lent only within `receive`.

    /// Starts a thread, which calls `onEnd` when it ends.
    ///
    /// - Throws: `TLSError` of code `engine` when the kernel provides no descriptors.
    static func start(
        on socket: ListeningSocket, identity: TLSIdentity, settings: TLSServerSettings,
        limit: ConnectionLimit, waits: @escaping @Sendable (String?) -> Bool,
        reception: @escaping @Sendable () -> any Reception, onEnd: @escaping @Sendable () -> Void
    ) throws(TLSError) -> Handle {
        let poll = epoll_create1(Int32(EPOLL_CLOEXEC))
        let wake = eventfd(0, Int32(EFD_CLOEXEC))
        guard poll >= 0, wake >= 0 else {
            let reason = String(cString: strerror(errno))
            if poll >= 0 { Glibc.close(poll) }
            if wake >= 0 { Glibc.close(wake) }
            throw TLSError(.engine, "no descriptors for TLS handshakes: \(reason)")
        }
        let handle = Handle(wake: wake)
        let thread = Thread {
            gateway_name_thread("arrivals")
            AcceptorLoop(
                poll: poll, handle: handle, socket: socket, identity: identity, settings: settings,
                limit: limit, waits: waits, reception: reception())?
                .run()
            Glibc.close(poll)
            onEnd()
        }
        thread.stackSize = 512 * 1024
        thread.start()
        return handle
    }

    private init?(
        poll: Int32, handle: Handle, socket: ListeningSocket, identity: TLSIdentity,
        settings: TLSServerSettings, limit: ConnectionLimit,
        waits: @escaping @Sendable (String?) -> Bool, reception: any Reception
    ) {
        guard let wire = MemoryBIO.ofThread() else { return nil }
        (self.poll, self.handle, self.wire) = (poll, handle, wire)
        (self.identity, self.settings, self.limit) = (identity, settings, limit)
        (self.waits, self.reception) = (waits, reception)
        listening = socket
        handshakes = ExpiryQueue(ahead: settings.handshakeTimeout)
        requests = ExpiryQueue(ahead: settings.firstRequestTimeout)
        closings = ExpiryQueue(ahead: settings.closeTimeout)
        counters = settings.counters.ofLoop(ObjectIdentifier(handle))
    }

    deinit { input.deallocate() }

    private func run() {
        var event = epoll_event()
        event.events = EPOLLIN.rawValue
        event.data.u64 = Self.wakeToken
        guard epoll_ctl(poll, EPOLL_CTL_ADD, handle.wake, &event) == 0 else { return }
        var events = [epoll_event](repeating: epoll_event(), count: Self.eventsMax)
        while listening != nil || count > 0 {
            acceptOrPause()
            let ready = epoll_wait(poll, &events, Int32(Self.eventsMax), waitMilliseconds())
            guard ready >= 0 || errno == EINTR else { return }
            now = .now()
            lookAtAll(events.prefix(Int(max(0, ready))))
            endOverdue()
            if let due = passingDue, now >= due { passOn() }
        }
        passOn()
    }

    private func passOn() {
        guard passingDue != nil else { return }
        passingDue = nil
        reception.passOn()
    }

    private func lookAtAll(_ events: ArraySlice<epoll_event>) {
        guard let onTurn = settings.onArrivalTurn, !events.isEmpty else {
            for event in events { look(at: event) }
            return
        }
        var began = gateway_thread_cpu_nanoseconds()
        for event in events {
            look(at: event)
            let ended = gateway_thread_cpu_nanoseconds()
            onTurn(ended - began)
            began = ended
        }
    }

    private func look(at event: epoll_event) {
        switch event.data.u64 {
        case Self.listenToken: accept()
        case Self.wakeToken: beginStopping()
        case let number:
            let token = Token(
                place: UInt32(truncatingIfNeeded: number), serial: UInt32(number >> 32))
            guard places[Int(token.place)].serial == token.serial else { return }
            if event.events & EPOLLOUT.rawValue != 0 { sendRest(token) } else { receive(token) }
        }
    }

    // MARK: Accepting

    /// Asks the kernel to report new connections, unless accepting is paused or has ended.
    private func acceptOrPause() {
        guard let listening, !isAccepting, now >= acceptsAgain else { return }
        var event = epoll_event()
        // One connection wakes one thread.
        event.events = EPOLLIN.rawValue | EPOLLEXCLUSIVE.rawValue
        event.data.u64 = Self.listenToken
        isAccepting = epoll_ctl(poll, EPOLL_CTL_ADD, listening.descriptor, &event) == 0
        if !isAccepting { acceptsAgain = now + Self.fullPause }
    }

    private func pause() {
        guard let listening, isAccepting else { return }
        isAccepting = false
        acceptsAgain = now + Self.fullPause
        epoll_ctl(poll, EPOLL_CTL_DEL, listening.descriptor, nil)
    }

    private func accept() {
        guard let listening, isAccepting else { return }
        for _ in 0..<Self.acceptedMax {
            // Reserve a place before accepting: several threads must not all take the last one.
            guard limit.take() else { return pause() }
            let (socket, address) = Self.accept(listening.descriptor)
            if socket >= 0 {
                begin(socket, address)
                continue
            }
            limit.release()
            switch errno {
            case EAGAIN, EWOULDBLOCK: return
            // Out of descriptors or memory: an open connection has to end first.
            case EMFILE, ENFILE, ENOBUFS, ENOMEM: return pause()
            // The peer has already gone (accept(2)).
            default: continue
            }
        }
    }

    /// Accepts one connection. Returns its socket, or -1 when there is none, and its peer's
    /// address.
    private static func accept(_ listener: Int32) -> (Int32, SourceAddress) {
        var storage = sockaddr_storage()
        var bytes = UInt32(MemoryLayout<sockaddr_storage>.size)
        // Sound: the kernel writes at most `bytes` bytes; the pointer does not leave the closure.
        return withUnsafeMutableBytes(of: &storage) { storage in
            let socket = gateway_accept(
                listener, storage.baseAddress, &bytes, O_CLOEXEC | O_NONBLOCK)
            guard socket >= 0 else { return (socket, .unknown) }
            let address = storage.prefix(Int(bytes))
            return (socket, SourceAddress(UnsafeRawBufferPointer(rebasing: address)))
        }
    }

    private func begin(_ socket: Int32, _ address: SourceAddress) {
        guard let permit = limit.permit(for: address) else {
            counters.refuseConnection(.address)
            Glibc.close(socket)
            limit.release()
            return
        }
        let connection = TLSConnection(
            identity.current, socket: socket, permit: permit, offersHTTP2: settings.offersHTTP2)
        guard let connection else {
            ERR_clear_error()
            Glibc.close(socket)
            permit.release()
            return
        }
        connection.use(wire)
        let place: UInt32
        if let free = freePlaces.popLast() {
            place = free
        } else {
            place = UInt32(clamping: places.count)
            places.append(Place())
        }
        count += 1
        let token = Token(place: place, serial: places[Int(place)].serial)
        places[Int(place)].arrival = PendingConnection(
            connection, deadline: handshakes.set(token, now: now), now: now)
        guard watch(EPOLL_CTL_ADD, socket: socket, events: EPOLLIN.rawValue, token: token) else {
            return forget(token)
        }
    }

    // MARK: Places

    func watch(_ operation: Int32, socket: Int32, events: UInt32, token: Token) -> Bool {
        var event = epoll_event()
        event.events = events
        event.data.u64 = UInt64(token.serial) << 32 | UInt64(token.place)
        return epoll_ctl(poll, operation, socket, &event) == 0
    }

    /// Frees the connection's place. The connection continues elsewhere, or is closed with its last
    /// reference.
    func forget(_ token: Token) {
        let place = Int(token.place)
        places[place].arrival = nil
        places[place].serial &+= 1
        freePlaces.append(token.place)
        count -= 1
    }

    /// Hands the connection to the reception, which owns it from then on.
    func handOn(_ token: Token, _ first: ReadPass) {
        guard let arrival = places[Int(token.place)].arrival else { return }
        epoll_ctl(poll, EPOLL_CTL_DEL, arrival.connection.socket, nil)
        let isLeft = reception.take(
            Arrived(connection: arrival.connection, first: first, requestDue: arrival.deadline))
        if isLeft, passingDue == nil { passingDue = now + Self.gatheringTime }
        forget(token)
    }

    // MARK: Time

    private func isSet(_ token: Token, _ deadline: NIODeadline) -> Bool {
        let place = places[Int(token.place)]
        return place.serial == token.serial && place.arrival?.deadline == deadline
    }

    private func waitMilliseconds() -> Int32 {
        var next = passingDue
        for due in [handshakes.next(isSet), requests.next(isSet), closings.next(isSet)] {
            if let due { next = min(next ?? due, due) }
        }
        if listening != nil, !isAccepting { next = min(next ?? acceptsAgain, acceptsAgain) }
        guard let next else { return -1 }
        let left = next - .now()
        // Rounded up: otherwise the loop would spin until a deadline less than 1 ms away has
        // passed.
        return left <= .zero ? 0 : Int32(clamping: left.nanoseconds / 1_000_000 + 1)
    }

    private func endOverdue() {
        while let token = handshakes.takePassed(now: now, isSet) {
            counters.failed(.timeout)
            forget(token)
        }
        while let token = requests.takePassed(now: now, isSet) { sayGoodbye(token) }
        while let token = closings.takePassed(now: now, isSet) { forget(token) }
    }

    // MARK: Stopping

    private func beginStopping() {
        epoll_ctl(poll, EPOLL_CTL_DEL, handle.wake, nil)
        pause()
        listening = nil
        for (index, place) in places.enumerated() {
            let token = Token(place: UInt32(clamping: index), serial: place.serial)
            switch place.arrival?.phase {
            case .handshaking: forget(token)
            case .open: sayGoodbye(token)
            case .closing, nil: break
            }
        }
    }
}
