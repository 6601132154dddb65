import GatewayCore
import GatewayEngine
import GatewayOperations
import GatewaySigning
import GatewayTLS
import Logging
import NIOCore
import Synchronization
import WidgetModel

/// The limits of the requests of the TLS port: rates by source address, app and client, and a
/// budget for the bytes of request bodies. Checked before the work of a request; thread-safe.
package final class RequestLimits: Sendable {
    fileprivate typealias Caller = CheckedContinuation<Bool, Never>

    /// The number of body bytes that cost as much as a request.
    private static let bytesPerToken = 16 * 1024
    /// The maximum wait of a body for the budget, for its first piece and for more; well within the
    /// time that it may bring nothing. The second is longer because what has arrived would be lost.
    private static let bodyWaits = (first: TimeAmount.seconds(10), more: TimeAmount.seconds(20))
    /// The maximum number of bodies waiting for their first piece; each occupies a connection that
    /// is not read meanwhile.
    package static let bodiesWaitingMax = 1_024
    /// The maximum number of bytes of a small body, which the budget counts as they arrive.
    static let smallBodyMax = 64 * 1024
    /// The maximum number of buckets of each kind; each takes about 100 bytes.
    private static let bucketsMax = 65_536

    private let rates: RateLimits
    private let addresses: Mutex<BucketTable<SourceAddress>>
    private let apps: Mutex<BucketTable<String>>
    private let clients: Mutex<BucketTable<ClientKey>>
    private let tickets: Mutex<BucketTable<ClientKey>>
    private let refusedTokens: Mutex<BucketTable<TokenSender>>
    private let budget: Mutex<ByteBudget<String, Caller>>
    private let metrics: GatewayMetrics
    /// Where rejections are logged; `nil` for nowhere.
    let log: SampledLog?
    /// Monotonic milliseconds.
    private let now: @Sendable () -> Int64

    package init(
        rates: RateLimits, bytesInWork: Int, metrics: GatewayMetrics, log: SampledLog? = nil,
        now: @escaping @Sendable () -> Int64
    ) {
        self.log = log
        self.rates = rates
        self.metrics = metrics
        self.now = now
        addresses = Mutex(BucketTable(rate: rates.address, slotsMax: Self.bucketsMax))
        apps = Mutex(BucketTable(rate: rates.app, slotsMax: Self.bucketsMax))
        clients = Mutex(BucketTable(rate: rates.client, slotsMax: Self.bucketsMax))
        tickets = Mutex(BucketTable(rate: rates.tickets, slotsMax: Self.bucketsMax))
        refusedTokens = Mutex(
            BucketTable(rate: rates.refusedTokens, slotsMax: Self.bucketsMax))
        budget = Mutex(
            ByteBudget(
                limit: bytesInWork, waitingMax: Self.bodiesWaitingMax, smallMax: Self.smallBodyMax))
    }

    var appRate: TokenRate { rates.app }

    /// The bytes of request bodies that count against the budget now.
    package var bytesInWork: Int { budget.withLock { $0.used } }

    // MARK: Rates

    /// Counts a request of an address. Throws 429.
    func admit(_ address: SourceAddress?) throws(ProblemDetails) {
        guard let address else { return }
        let now = now()
        try require(
            addresses.withLock { $0.take(from: address, now: now) }, .address, rates.address,
            of: "\(address)")
    }

    /// Counts a request of an app, and of the client if a client sent it. Throws 429.
    func admit(_ token: VerifiedToken) throws(ProblemDetails) {
        let now = now()
        if let client = Self.client(token) {
            try require(
                clients.withLock { $0.take(from: client, now: now) }, .client, rates.client,
                of: "\(client.app) \(client.client)")
        }
        try require(
            apps.withLock { $0.take(from: token.app, now: now) }, .app, rates.app, of: token.app)
    }

    /// Counts a ticket of a client. Throws 429.
    func admitTicket(of client: ClientKey) throws(ProblemDetails) {
        let now = now()
        try require(
            tickets.withLock { $0.take(from: client, now: now) }, .tickets, rates.tickets,
            of: "\(client.app) \(client.client)")
    }

    /// Charges the size of a request's body to its senders.
    fileprivate func charge(_ bytes: Int, to token: VerifiedToken) {
        let tokens = Int64(bytes / Self.bytesPerToken)
        guard tokens > 0 else { return }
        let now = now()
        if let client = Self.client(token) {
            clients.withLock { $0.charge(tokens, to: client, now: now) }
        }
        apps.withLock { $0.charge(tokens, to: token.app, now: now) }
    }

    /// Returns 429 if the address has sent too many invalid tokens of a kind.
    func excessOfRefusedTokens(
        _ address: SourceAddress?, of kind: TokenKind
    ) -> ProblemDetails? {
        guard let address else { return nil }
        let now = now()
        let sender = TokenSender(address: address, kind: kind)
        guard refusedTokens.withLock({ $0.remaining(for: sender, now: now) == 0 }) else {
            return nil
        }
        let rate = rates.refusedTokens
        return excess(of: .refusedTokens, rate, by: "\(address)", rate.period / rate.count)
    }

    /// Counts an invalid token.
    func noteRefusedToken(_ address: SourceAddress?, of kind: TokenKind) {
        guard let address else { return }
        let now = now()
        let sender = TokenSender(address: address, kind: kind)
        refusedTokens.withLock { $0.charge(1, to: sender, now: now) }
    }

    /// A backend does not count as a client, whatever its `sub`.
    private static func client(_ token: VerifiedToken) -> ClientKey? {
        token.scopes == [.client] ? ClientKey(app: token.app, client: token.subject) : nil
    }

    private func require(
        _ verdict: TokenBucket.Verdict, _ reason: RequestLimit, _ rate: TokenRate,
        of sender: @autoclosure () -> String
    ) throws(ProblemDetails) {
        guard case .refused(let milliseconds) = verdict else { return }
        throw excess(of: reason, rate, by: sender(), milliseconds)
    }

    private func excess(
        of reason: RequestLimit, _ rate: TokenRate, by sender: @autoclosure () -> String,
        _ milliseconds: Int64
    ) -> ProblemDetails {
        metrics.requestRefused(reason)
        if let log {
            let sender = sender()
            log.log(
                .rateLimit, of: "\(reason.rawValue) \(sender)",
                [
                    "limit": "\(reason.rawValue)", "sender": "\(sender)",
                    "rate": "\(rate.count) in \(rate.period) ms",
                ])
        }
        return Problem.rateLimited(reason, rate, retryAfter: Int((milliseconds + 999) / 1_000))
    }

    // MARK: Byte budget

    /// Reserves bytes for a body that has reserved `holding` already, or waits for them. Throws 503
    /// if they are not available in time.
    fileprivate func reserve(
        _ bytes: Int, _ app: String, body: ObjectIdentifier, holding: Int, _ loop: any EventLoop
    ) async throws {
        let isGranted = await withCheckedContinuation { (caller: Caller) in
            let outcome = budget.withLock {
                $0.reserve(bytes, for: app, body: body, holding: holding, caller)
            }
            switch outcome {
            case .granted: caller.resume(returning: true)
            case .refused: caller.resume(returning: false)
            case .waits(let ticket):
                let wait = holding == 0 ? Self.bodyWaits.first : Self.bodyWaits.more
                loop.scheduleTask(in: wait) { self.expire(ticket) }
            }
        }
        guard isGranted else {
            metrics.requestRefused(.bytesInWork)
            throw Problem.unavailable(
                "Too many request bodies in flight; retry in 2 s, or send smaller posts.",
                retryAfter: 2)
        }
    }

    private func expire(_ ticket: ByteBudget<String, Caller>.Ticket) {
        let (waiter, granted) = budget.withLock { $0.cancel(ticket) }
        waiter?.resume(returning: false)
        for caller in granted { caller.resume(returning: true) }
    }

    fileprivate func release(_ bytes: Int, _ app: String, body: ObjectIdentifier) {
        for caller in budget.withLock({ $0.release(bytes, for: app, body: body) }) {
            caller.resume(returning: true)
        }
    }
}

/// The kinds of tokens whose invalid ones are counted apart: tokens of a removed key, which many
/// senders behind one address may repeat, must not shut out tokens or tickets that may be valid.
enum TokenKind {
    case ofTrustedKey, ofOtherKey, ticket
}

/// The senders at an address of tokens of a kind.
private struct TokenSender: Hashable, Sendable {
    let address: SourceAddress
    let kind: TokenKind
}

/// The account of one request: its token, and the bytes reserved for its body until it has its
/// response.
package final class RequestAccount: Sendable {
    private struct State: Sendable {
        var token: VerifiedToken?
        var app = ""
        var bytes = 0
    }

    let limits: RequestLimits
    let source: SourceAddress?
    private let loop: any EventLoop
    private let state = Mutex(State())

    /// - Parameter source: The address that the request is counted for; `nil` for none.
    init(_ limits: RequestLimits, source: SourceAddress?, on loop: any EventLoop) {
        self.limits = limits
        self.source = source
        self.loop = loop
    }

    /// Records the request's token.
    func identify(_ token: VerifiedToken) {
        state.withLock { state in
            state.token = token
            state.app = token.app
        }
    }

    /// Reserves bytes for the body, or waits for them. Throws 503.
    func reserve(_ bytes: Int) async throws {
        let (app, held) = state.withLock { ($0.app, $0.bytes) }
        try await limits.reserve(bytes, app, body: ObjectIdentifier(self), holding: held, loop)
        state.withLock { $0.bytes += bytes }
    }

    /// Charges a body that was read to the rates.
    func charge(_ bytes: Int) {
        guard let token = state.withLock({ $0.token }) else { return }
        limits.charge(bytes, to: token)
    }

    /// Releases the reserved bytes: the request has its response.
    func close() {
        let (app, bytes) = state.withLock { state in
            defer { state.bytes = 0 }
            return (state.app, state.bytes)
        }
        if bytes > 0 { limits.release(bytes, app, body: ObjectIdentifier(self)) }
    }
}
