import CurlMulti
import Dispatch
import GatewayCore
import Glibc
import Synchronization

/// Resolves host names to addresses. libcurl's own resolver is not used: when libcurl 7.88 removes
/// a transfer whose name is being resolved, it waits for the thread that resolves it, so one name
/// that no server answers would stop all of a client's transfers for seconds.
package struct NameResolver: Sendable {
    private typealias Find = @Sendable (_ name: String, _ owner: String) async -> [IPAddress]?

    private let find: Find

    private init(find: @escaping Find) { self.find = find }

    /// A resolver that calls the given function.
    package init(_ addresses: @escaping @Sendable (_ name: String) async -> [IPAddress]?) {
        self.init(find: { name, _ in await addresses(name) })
    }

    /// Returns the addresses of a name, the best first; `nil` without any, or after the deadline.
    ///
    /// - Parameter owner: The owner of the name; look-ups of one owner do not delay those of
    ///   others.
    package func addresses(_ name: String, of owner: String = "") async -> [IPAddress]? {
        await find(name, owner)
    }

    /// The system's resolver: files, DNS and its other configured sources. Concurrent callers with
    /// one owner and name share a look-up.
    ///
    /// - Parameters:
    ///   - lookUpsMax: The most concurrent look-ups of an owner. Each blocks a thread, and the
    ///     system abandons an unanswered one only after many seconds.
    ///   - waitingMax: The most look-ups of an owner that wait for a free thread, and the most
    ///     callers that share one; further ones fail at once.
    ///   - deadline: The longest time that a caller waits.
    ///   - lookUp: Replaces the system's blocking look-up.
    package static func system(
        lookUpsMax: Int = 8, waitingMax: Int = 1_000, deadline: Duration = .seconds(10),
        lookUp: (@Sendable (_ name: String) -> [IPAddress]?)? = nil
    ) -> NameResolver {
        let owners = Mutex<[String: LookUps]>([:])
        return NameResolver(find: { name, owner in
            let lookUps = owners.withLock { owners in
                let lookUps =
                    owners[owner]
                    ?? LookUps(
                        atOnceMax: lookUpsMax, waitingMax: waitingMax, deadline: deadline,
                        lookUp ?? { LookUps.ask($0) })
                owners[owner] = lookUps
                return lookUps
            }
            return await lookUps.addresses(of: name)
        })
    }
}

/// Runs blocking look-ups, a few at a time.
private final class LookUps: Sendable {
    /// A caller, which is answered once: by the system or at its deadline.
    final class Caller: Sendable {
        typealias Waiter = CheckedContinuation<[IPAddress]?, Never>

        private let waiter: Mutex<Waiter?>

        init(_ waiter: Waiter) {
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
        /// The names that wait for a thread.
        var waiting: [String] = []
        /// The callers of each name that is being looked up or waits.
        var callers: [String: [Caller]] = [:]

        /// Drops waiting names whose callers no longer wait.
        mutating func dropAbandoned() {
            for name in waiting where callers[name]?.allSatisfy(\.isAnswered) ?? true {
                callers[name] = nil
            }
            waiting.removeAll { [callers] in callers[$0] == nil }
        }
    }

    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "name-resolver", attributes: .concurrent)
    private let atOnceMax: Int
    private let waitingMax: Int
    private let milliseconds: Int
    private let ask: @Sendable (String) -> [IPAddress]?

    init(
        atOnceMax: Int, waitingMax: Int, deadline: Duration,
        _ ask: @escaping @Sendable (String) -> [IPAddress]?
    ) {
        self.atOnceMax = atOnceMax
        self.waitingMax = waitingMax
        let (seconds, attoseconds) = deadline.components
        milliseconds = Int(seconds) * 1_000 + Int(attoseconds / 1_000_000_000_000_000)
        self.ask = ask
    }

    func addresses(of name: String) async -> [IPAddress]? {
        await withCheckedContinuation { continuation in
            let caller = Caller(continuation)
            enum Turn { case now, later, never }
            let turn = state.withLock { state -> Turn in
                var turn = Turn.later
                if let others = state.callers[name]?.count {
                    if others >= waitingMax {
                        state.callers[name]?.removeAll(where: \.isAnswered)
                    }
                    guard state.callers[name]?.count ?? 0 < waitingMax else { return .never }
                } else if state.atOnce < atOnceMax {
                    state.atOnce += 1
                    turn = .now
                } else {
                    state.dropAbandoned()
                    guard state.waiting.count < waitingMax else { return .never }
                    state.waiting.append(name)
                }
                state.callers[name, default: []].append(caller)
                return turn
            }
            if turn == .never { return caller.answer(nil) }
            queue.asyncAfter(deadline: .now() + .milliseconds(milliseconds)) { caller.answer(nil) }
            if turn == .now { queue.async { self.carryOut(name) } }
        }
    }

    private func carryOut(_ name: String) {
        var next: String? = name
        while let name = next {
            let addresses = ask(name)
            let callers = state.withLock { state in
                let callers = state.callers.removeValue(forKey: name) ?? []
                state.dropAbandoned()
                next = state.waiting.isEmpty ? nil : state.waiting.removeFirst()
                if next == nil { state.atOnce -= 1 }
                return callers
            }
            for caller in callers { caller.answer(addresses) }
        }
    }

    static func ask(_ name: String) -> [IPAddress]? {
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
