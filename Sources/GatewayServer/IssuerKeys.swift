import CurlMulti
import GatewayCore
import GatewayDelivery
import GatewayEngine
import GatewayOperations
import GatewaySigning
import Logging
import ServiceLifecycle
import Synchronization
import WidgetModel

/// Keeps the key sets that issuers publish at URLs up to date.
///
/// A set that cannot be fetched stays in force as it was: an issuer that is down must not lock out
/// every client of the gateway.
final class IssuerKeys: Service {
    /// The interval between two looks at the schedules.
    private static let interval = Duration.seconds(1)

    struct Source {
        var schedule: KeySetSchedule
        var set: JWKSet
        var issuers: Set<String>
    }

    private struct State {
        var sources: [WebhookEndpoint: Source] = [:]
        var fetcher: KeySetFetcher
    }

    private let state: Mutex<State>
    private let files: KeySetFiles
    private let metrics: GatewayMetrics
    private let clock: GatewayClock
    private let logger: Logger
    private let changed = Mutex<(@Sendable () -> Void)?>(nil)

    /// Creates the sources of a configuration, with their sets in the data directory. Throws
    /// ``CurlError`` (`noMemory`).
    init(
        _ configuration: GatewayConfiguration, metrics: GatewayMetrics, clock: GatewayClock,
        logger: Logger
    ) throws(CurlError) {
        files = KeySetFiles(data: configuration.data)
        state = Mutex(State(fetcher: try Self.fetcher(configuration)))
        self.metrics = metrics
        self.clock = clock
        self.logger = logger
        follow(configuration.issuers)
    }

    private static func fetcher(
        _ configuration: GatewayConfiguration
    ) throws(CurlError) -> KeySetFetcher {
        try KeySetFetcher(
            addressGuard: AddressGuard(allowed: configuration.issuerKeyRanges),
            trust: CurlTrust(file: configuration.issuerKeyTrust))
    }

    private var now: Int64 { clock.now() / 1_000 }

    /// Follows the issuers of another configuration. Throws ``CurlError`` (`noMemory`), before
    /// anything changes.
    func use(_ configuration: GatewayConfiguration) throws(CurlError) {
        let fetcher = try Self.fetcher(configuration)
        let former = state.withLock { state in
            defer { state.fetcher = fetcher }
            return state.fetcher
        }
        follow(configuration.issuers)
        Task { await former.drain() }
    }

    private func follow(_ issuers: [IssuerSettings]) {
        var wanted: [WebhookEndpoint: Set<String>] = [:]
        for issuer in issuers {
            if let url = issuer.keysURL { wanted[url, default: []].insert(issuer.iss) }
        }
        let known = state.withLock { Set($0.sources.keys) }
        let stored = wanted.keys.filter { !known.contains($0) }.map {
            ($0, files.read(of: $0.url) ?? JWKSet())
        }
        let sets = Dictionary(uniqueKeysWithValues: stored)
        let now = now
        state.withLock { state in
            var sources: [WebhookEndpoint: Source] = [:]
            for (url, issuers) in wanted {
                var source =
                    state.sources[url]
                    ?? Source(
                        schedule: KeySetSchedule(now: now), set: sets[url] ?? JWKSet(),
                        issuers: issuers)
                source.issuers = issuers
                // The new configuration may be what mends it.
                source.schedule.retry(now: now)
                sources[url] = source
            }
            state.sources = sources
        }
    }

    /// Calls `body` whenever a fetched set differs from the one before.
    func onChange(_ body: @escaping @Sendable () -> Void) {
        changed.withLock { $0 = body }
    }

    /// Returns the last set that was fetched from a URL; empty if there is none yet.
    func set(of url: WebhookEndpoint) -> JWKSet {
        state.withLock { $0.sources[url]?.set } ?? JWKSet()
    }

    /// Records that a token of an issuer named an unknown key: its sets may be out of date.
    func missesKey(of issuer: String) {
        let now = now
        state.withLock { state in
            for (url, source) in state.sources where source.issuers.containsBytes(of: issuer) {
                state.sources[url]?.schedule.missesKey(now: now)
            }
        }
    }

    /// Fetches the sets that the gateway has nothing of, before it accepts tokens.
    func fetchMissing() async {
        await fetchDue { $0.set.keys.isEmpty }
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            // An issuer that is slow to respond delays no other one.
            await withDiscardingTaskGroup { group in
                repeat {
                    self.beginDue(in: &group) { _ in true }
                } while (try? await Task.sleep(for: Self.interval)) != nil
                group.cancelAll()
            }
        }
        await state.withLock { $0.fetcher }.drain()
    }

    /// Fetches the sets that are due and fulfil a condition.
    func fetchDue(_ condition: (Source) -> Bool) async {
        await withDiscardingTaskGroup { group in beginDue(in: &group, condition) }
    }

    private func beginDue(
        in group: inout DiscardingTaskGroup, _ condition: (Source) -> Bool
    ) {
        let now = now
        let (due, fetcher) = state.withLock { state in
            var due: [WebhookEndpoint] = []
            for (url, source) in state.sources where condition(source) {
                if state.sources[url]?.schedule.begin(now: now) == true { due.append(url) }
            }
            return (due, state.fetcher)
        }
        for url in due { group.addTask { await self.fetch(url, by: fetcher) } }
    }

    private func fetch(_ url: WebhookEndpoint, by fetcher: KeySetFetcher) async {
        do throws(KeySetFetcher.Failure) {
            let fetched = try await fetcher.fetch(url)
            took(fetched, from: url)
        } catch {
            // A gateway that stops ends its requests: that says nothing about the issuer.
            if !Task.isCancelled { failed(error, from: url) }
        }
    }

    private func took(_ fetched: KeySetFetcher.Fetched, from url: WebhookEndpoint) {
        let now = now
        let (isNew, wasFailing) = state.withLock { state in
            guard let source = state.sources[url] else { return (false, false) }
            state.sources[url]?.set = fetched.set
            state.sources[url]?.schedule.succeeded(maxAge: fetched.maxAge, now: now)
            return (source.set != fetched.set, source.schedule.isFailing)
        }
        metrics.fetchedIssuerKeys(.fetched)
        if wasFailing {
            logger.notice("an issuer's keys can be fetched again", metadata: ["url": "\(url.url)"])
        }
        guard isNew else { return }
        logger.notice(
            "an issuer's keys were fetched and differ from those before",
            metadata: [
                "url": "\(url.url)", "keys": "\(fetched.set.keys.map(\.kid))",
                "unusable": "\(fetched.set.skipped)",
            ])
        do throws(SigningError) {
            try files.write(fetched.set, of: url.url)
        } catch {
            logger.warning(
                "an issuer's keys cannot be stored for the next start",
                metadata: ["url": "\(url.url)", "error": "\(error)"])
        }
        changed.withLock { $0 }?()
    }

    private func failed(_ failure: KeySetFetcher.Failure, from url: WebhookEndpoint) {
        let now = now
        let (isFirst, keys) = state.withLock { state in
            guard let source = state.sources[url] else { return (false, 0) }
            state.sources[url]?.schedule.failed(now: now, random: .random(in: .min ... .max))
            return (!source.schedule.isFailing, source.set.keys.count)
        }
        metrics.fetchedIssuerKeys(.failed)
        guard isFirst else { return }
        logger.warning(
            keys == 0
                ? "an issuer's keys cannot be fetched, and its tokens are rejected"
                : "an issuer's keys cannot be fetched; those from before stay in force",
            metadata: ["url": "\(url.url)", "error": "\(failure.message)"])
    }
}
