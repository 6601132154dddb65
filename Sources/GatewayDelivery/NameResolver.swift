import CurlMulti
import Dispatch
import GatewayPush
import Glibc
import Synchronization

/// Resolves host names to addresses.
package struct NameResolver: Sendable {
    /// Returns the addresses of a name, the best first; `nil` when it has none, or they were not
    /// found in time.
    package let addresses: @Sendable (_ name: String) async -> [IPAddress]?

    /// A resolver that calls the given function.
    package init(_ addresses: @escaping @Sendable (_ name: String) async -> [IPAddress]?) {
        self.addresses = addresses
    }

    /// The system's resolver: files, DNS and its other configured sources.
    ///
    /// - Parameters:
    ///   - lookUpsMax: The most concurrent look-ups. Each blocks a thread, and the system
    ///     abandons an unanswered one only after many seconds.
    ///   - waitingMax: The most look-ups that wait for a free thread; further ones fail at once.
    ///   - deadline: The longest time that a caller waits.
    package static func system(
        lookUpsMax: Int = 8, waitingMax: Int = 1_000, deadline: Duration = .seconds(10)
    ) -> NameResolver {
        let lookUps = LookUps(atOnceMax: lookUpsMax, waitingMax: waitingMax, deadline: deadline)
        return NameResolver { await lookUps.addresses(of: $0) }
    }
}

/// Runs blocking look-ups, a few at a time.
private final class LookUps: Sendable {
    /// One look-up, which is answered once: by the system or at its deadline.
    final class LookUp: Sendable {
        typealias Waiter = CheckedContinuation<[IPAddress]?, Never>

        let name: String
        private let waiter: Mutex<Waiter?>

        init(_ name: String, _ waiter: Waiter) {
            self.name = name
            self.waiter = Mutex(waiter)
        }

        var isAnswered: Bool { waiter.withLock { $0 == nil } }

        func answer(_ addresses: [IPAddress]?) {
            let waiter = waiter.withLock { waiter in
                defer { waiter = nil }
                return waiter
            }
            waiter?.resume(returning: addresses)
        }
    }

    private struct State {
        var atOnce = 0
        var waiting: [LookUp] = []
    }

    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "name-resolver", attributes: .concurrent)
    private let atOnceMax: Int
    private let waitingMax: Int
    private let milliseconds: Int

    init(atOnceMax: Int, waitingMax: Int, deadline: Duration) {
        self.atOnceMax = atOnceMax
        self.waitingMax = waitingMax
        let (seconds, attoseconds) = deadline.components
        milliseconds = Int(seconds) * 1_000 + Int(attoseconds / 1_000_000_000_000_000)
    }

    func addresses(of name: String) async -> [IPAddress]? {
        await withCheckedContinuation { continuation in
            let lookUp = LookUp(name, continuation)
            enum Turn { case now, later, never }
            let turn = state.withLock { state -> Turn in
                if state.atOnce < atOnceMax {
                    state.atOnce += 1
                    return .now
                }
                // Drop look-ups whose callers no longer wait.
                state.waiting.removeAll(where: \.isAnswered)
                guard state.waiting.count < waitingMax else { return .never }
                state.waiting.append(lookUp)
                return .later
            }
            if turn == .never { return lookUp.answer(nil) }
            queue.asyncAfter(deadline: .now() + .milliseconds(milliseconds)) { lookUp.answer(nil) }
            if turn == .now { queue.async { self.carryOut(lookUp) } }
        }
    }

    private func carryOut(_ lookUp: LookUp) {
        var next: LookUp? = lookUp
        while let lookUp = next {
            if !lookUp.isAnswered { lookUp.answer(Self.ask(lookUp.name)) }
            next = state.withLock { state in
                guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
                state.atOnce -= 1
                return nil
            }
        }
    }

    private static func ask(_ name: String) -> [IPAddress]? {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var first: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(name, nil, &hints, &first) == 0 else { return nil }
        defer { freeaddrinfo(first) }
        var addresses: [IPAddress] = []
        for entry in sequence(first: first, next: { $0?.pointee.ai_next }) {
            guard let entry = entry?.pointee, let address = entry.ai_addr else { break }
            // Sound: the address is `ai_addrlen` bytes long and lives until `freeaddrinfo`.
            let bytes = UnsafeRawBufferPointer(start: address, count: Int(entry.ai_addrlen))
            guard let found = addressBytes(family: entry.ai_family, bytes) else { continue }
            addresses += IPAddress(bytes: found).map { [$0] } ?? []
        }
        return addresses.isEmpty ? nil : addresses
    }
}
