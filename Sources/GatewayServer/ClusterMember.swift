import Foundation
import GatewayCluster
import GatewayCore
import GatewayEngine
import GatewayOperations
import GatewaySigning
import GatewayStorage
import GatewayTLS
import Logging
import ServiceLifecycle
import Synchronization
import WidgetModel

/// A gateway that is a node of a cluster: follows the log, leads when no other node does, and
/// reports its clients to the leader.
final class ClusterMember: Service {
    let link: ClusterLink
    /// The identity of the port for other nodes.
    let identity: TLSIdentity
    private let store: SQLiteStore
    private let logger: Logger
    private let state = Mutex(State())
    /// Has an element once the log has other key rings than before.
    private let (keys, newKeys) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))

    private struct State {
        /// `nil` before it follows.
        var engine: Engine?
        var endPushes: @Sendable () async -> Void = {}
        var following: Task<Void, Never>?
        var telling: Task<Void, Never>?
        /// Has another node lead, when the gateway stops.
        var leaving: Task<Void, Never>?
        /// Restores the pushes of the node that leads.
        var restoring: Task<Void, Never>?
        /// The generation of the leader that knows every client's contact.
        var told: Int64?
        var toldAt: Int64 = 0
        /// The start of each other node, when it told this one last, in monotonic milliseconds, and
        /// whether that is all that it has to tell.
        var heard: [String: (start: String, at: Int64, isWhole: Bool)] = [:]
    }

    /// The longest wait of pushes for the other nodes' contacts.
    private static let hearing = Duration.seconds(2)
    /// The interval at which contacts are told.
    private static let interval = Duration.milliseconds(250)
    /// The longest time between two of them, in milliseconds.
    private static let silenceMax: Int64 = 2_000
    /// The time after which all are told again: the leader may have missed this node.
    private static let gapMax: Int64 = 5_000
    /// The time after which a node that tells nothing has no streams.
    private static let absenceMax: Int64 = 10_000
    private static let contactsAtOnce = 200

    /// - Throws: `SigningError`, `TLSError`, `CurlError`.
    init(_ start: ClusterStart, clock: GatewayClock, logger: Logger) throws {
        link = try ClusterLink(start.node, secret: Array(start.store.secret), clock: clock)
        identity = TLSIdentity(try link.identity.context())
        store = start.store
        self.logger = logger
    }

    private var node: ClusterNode { link.node }

    /// Begins to follow the log.
    ///
    /// - Parameters:
    ///   - endPushes: Ends pushing, for good.
    ///   - rings: Returns the key rings as they are configured.
    ///   - onKeys: Called when the leader's key rings may have changed.
    ///   - onFailure: Called when the node cannot go on: its process must end.
    func start(
        _ engine: Engine, endPushes: @escaping @Sendable () async -> Void,
        rings: @escaping @Sendable () -> SharedKeyRings,
        onKeys: @escaping @Sendable () -> Void,
        onFailure: @escaping @Sendable (_ reason: String) -> Void
    ) {
        let hooks = ClusterNode.Hooks(
            repeatBatch: { [store, newKeys] operations, position, previous in
                let repeated = try await store.writeLocally(cost: 1) {
                    try engine.log.repeatBatch(
                        operations, to: position, from: previous, &$0)
                }
                if operations.contains(where: \.isOfKeys) {
                    onKeys()
                    newKeys.yield()
                }
                return repeated.value
            },
            lead: { [store, newKeys, logger, weak self] isVoid, others in
                let now = engine.clock.wallSeconds()
                let least = isVoid ? EpochLedger.ordinalBeyondLoss(after: 0, now: now) : 0
                let epoch = EpochID(ordinal: least, nonce: .random(in: .min ... .max))
                // Before anybody may change them: what the former leader did last; of a new cluster,
                // this node's.
                try rings().copy(from: store)
                _ = try await engine.log.write(for: .gateway, cost: 1, freesSpace: true) {
                    try engine.log.openEpoch(epoch, voidsOlder: isVoid, &$0)
                }
                try await rings().publish(to: engine)
                newKeys.yield()
                logger.notice("this node leads", metadata: ["voidsCursors": "\(isVoid)"])
                self?.state.withLock { $0.heard = [:] }
                onKeys()
                // The lease is renewed meanwhile.
                let restoring = Task { [weak self] in
                    await self?.untilHeard(from: others)
                    guard !Task.isCancelled else { return }
                    do {
                        try await engine.push?.lead(from: engine.store)
                    } catch {
                        onFailure("pushes cannot be restored: \(error)")
                    }
                }
                self?.state.withLock { $0.restoring = restoring }
            },
            follow: { [logger, weak self] in
                logger.notice("this node follows")
                let restoring = self?.state.withLock { $0.restoring.take() }
                restoring?.cancel()
                // The first rest ends a restoration in progress, the second one that began since.
                await engine.push?.rest()
                await restoring?.value
                await engine.push?.rest()
                engine.clients.forgetContacts()
            })
        let following = Task { [node] in
            do {
                try await node.run(hooks)
            } catch {
                onFailure("\(error)")
            }
        }
        let telling = Task { [weak self] in
            while (try? await Task.sleep(for: Self.interval)) != nil { await self?.tell() }
        }
        state.withLock { state in
            (state.engine, state.following, state.telling) = (engine, following, telling)
            state.endPushes = endPushes
        }
    }

    /// Returns once the log has the cluster's key rings: with some of its own, a node would refuse what
    /// the others accept, and sign with what they do not publish.
    func untilKeysAreKnown() async throws {
        guard try !SharedKeyRings.areKnown(to: store) else { return }
        for await _ in keys { return }
    }

    /// When the gateway is to stop, another node leads as soon as no push is in flight: this one
    /// follows until its streams have ended.
    func run() async throws {
        try? await gracefulShutdown()
        state.withLock { state in
            state.leaving = Task { [node, endPushes = state.endPushes] in
                await endPushes()
                node.resign()
            }
        }
    }

    /// Lets another node lead, and follows no more.
    func stop() async {
        let tasks = state.withLock { state in
            state.endPushes = {}
            return [state.leaving.take(), state.telling.take(), state.following.take()]
        }
        for task in tasks {
            task?.cancel()
            await task?.value
        }
    }

    /// Returns when these nodes have told of their clients, who would be pushed to beside their streams;
    /// a node that is gone does not.
    private func untilHeard(from nodes: [String]) async {
        let end = ContinuousClock.now + Self.hearing
        while !Task.isCancelled, ContinuousClock.now < end,
            state.withLock({ state in nodes.contains { state.heard[$0]?.isWhole != true } })
        {
            try? await Task.sleep(for: .milliseconds(50))
        }
    }

    // MARK: Contacts

    private struct Message: Codable {
        struct Entry: Codable {
            let client: NodeClient
            let contact: NodeContact
        }

        /// The id of the node's start.
        let start: String
        let era: UInt32
        let entries: [Entry]
        /// Whether that was all, with what came before.
        let isWhole: Bool
    }

    /// Tells the leader of this node's clients.
    private func tell() async {
        guard let engine = state.withLock({ $0.engine }) else { return }
        guard let leader = node.leader, leader.name != node.name else {
            state.withLock { $0.told = nil }
            link.contacted(nil)
            // There is no other node to report them to.
            _ = engine.registry.takeContacts(all: false)
            if node.isLeading { forgetAbsent(engine) }
            return
        }
        let now = engine.clock.now()
        let (told, toldAt) = state.withLock { ($0.told, $0.toldAt) }
        let isWhole = told != leader.generation || now >= toldAt + Self.gapMax
        let contacts = engine.registry.takeContacts(all: isWhole)
        guard !contacts.isEmpty || isWhole || now >= toldAt + Self.silenceMax else { return }
        do {
            let era = engine.clients.era
            var rest = contacts[...]
            repeat {
                let entries = rest.prefix(Self.contactsAtOnce).map {
                    Message.Entry(client: NodeClient($0.key), contact: $0.contact)
                }
                rest = rest.dropFirst(Self.contactsAtOnce)
                _ = try await link.post(
                    Message(
                        start: node.start, era: era, entries: entries,
                        isWhole: isWhole && rest.isEmpty),
                    "\(GatewayRoutes.contactsPath)?node=\(node.name)", to: leader.name)
            } while !rest.isEmpty
            state.withLock { ($0.told, $0.toldAt) = (leader.generation, engine.clock.now()) }
            link.contacted(nil)
        } catch {
            link.contacted("\(leader.name): \(error)")
            // All of them next time.
            let wasTold = state.withLock { $0.told.take() } != nil
            guard wasTold, !Task.isCancelled else { return }
            logger.warning(
                "the leader does not answer",
                metadata: ["leader": "\(leader.name)", "reason": "\(error)"])
        }
    }

    /// Records what another node tells.
    func note(_ document: JSONValue, from node: String) throws {
        guard let engine = state.withLock({ $0.engine }) else { return }
        let message = try Message(decoding: document)
        let before = state.withLock { state in
            let before = state.heard[node]
            let wasWhole = before?.start == message.start && before?.isWhole == true
            state.heard[node] = (
                message.start, engine.clock.now(), message.isWhole || wasWhole
            )
            return before
        }
        // The streams of its former start have ended with that.
        if let before, before.start != message.start { engine.clients.forgetContacts(at: node) }
        engine.clients.heard(
            message.entries.map { ($0.client.key, $0.contact) }, at: node, era: message.era)
    }

    private func forgetAbsent(_ engine: Engine) {
        let now = engine.clock.now()
        let absent = state.withLock { state in
            let absent = state.heard.filter { $0.value.at < now - Self.absenceMax }.map(\.key)
            for name in absent { state.heard[name] = nil }
            return absent
        }
        for name in absent { engine.clients.forgetContacts(at: name) }
    }
}

/// The key rings of a cluster: the leader's files, which the other nodes copy from the log.
struct SharedKeyRings {
    fileprivate static let key = "key rings"
    private let data: String
    private let rings: [(name: KeyRingName, timing: KeyRing.Timing)]

    init(_ configuration: GatewayConfiguration) {
        data = configuration.data
        rings = StartChecks.rings(of: configuration)
    }

    private func directory(_ name: KeyRingName) -> KeyRingStore {
        KeyRingStore(directory: data + "/" + name.rawValue)
    }

    static func areKnown(to store: SQLiteStore) throws -> Bool { try store.meta(key) != nil }

    /// One copy at a time, so that none is older than the one before.
    private static let turn = Mutex(())

    /// Copies the rings from the log to the directory; returns whether they differed. Throws
    /// `StoreError`, `SigningError` or `Faults`.
    @discardableResult
    func copy(from store: SQLiteStore) throws -> Bool {
        try Self.turn.withLock { _ in try replace(from: store) }
    }

    private func replace(from store: SQLiteStore) throws -> Bool {
        guard let text = try store.meta(Self.key) else { return false }
        let shared = try [String: [String: String]](decoding: try JSONValue(parsing: Array(text)))
        var isChanged = false
        for (name, timing) in rings {
            guard let files = shared[name.rawValue] else { continue }
            let isOther = try directory(name).replace(
                with: files.mapValues { Array($0.utf8) }, timing: timing)
            isChanged = isChanged || isOther
        }
        return isChanged
    }

    /// Writes the directory's rings to the log if they differ. Throws `StoreError` or
    /// `SigningError`.
    func publish(to engine: Engine) async throws {
        var shared: [String: [String: String]] = [:]
        for (name, _) in rings {
            shared[name.rawValue] = try directory(name).files().mapValues {
                String(decoding: $0, as: UTF8.self)
            }
        }
        let text = Data(try JSONValue(encoding: shared).serialized)
        guard try engine.store.meta(Self.key) != text else { return }
        _ = try await engine.log.write(for: .gateway, cost: text.count, freesSpace: true) {
            try $0.setMeta(Self.key, text)
        }
    }
}

extension StoreOperation {
    fileprivate var isOfKeys: Bool {
        if case .setMeta(SharedKeyRings.key, _) = self { true } else { false }
    }
}
