import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayPostgres

@Suite struct SecretRotationModelTests {
    @Test(arguments: 0..<16) func nobodyMeetsAKeyThatItDoesNotHave(seed: Int) throws {
        var world = SecretWorld(seed: UInt64(seed))
        for _ in 0..<2_000 { world.step() }
        #expect(world.faults == [])
    }

    /// Shows that the runs above contain what they are for.
    @Test func theModelTakesEveryCourse() {
        var (uses, rotations, races, unready, ended) = (0, 0, 0, 0, 0)
        for seed in 0..<3 {
            var world = SecretWorld(seed: UInt64(seed))
            for _ in 0..<2_000 { world.step() }
            uses += world.uses
            rotations += world.rotations
            races += world.races
            unready += world.unready
            ended += world.ended
        }
        #expect(uses > 3_000)
        #expect(rotations > 30)
        #expect(races > 3)
        #expect(unready > 300)
        #expect(ended > 15)
    }
}

/// Three nodes with one table, which may rotate at once; one is cut off at times. Verifiers cache
/// the keys that some node publishes.
private struct SecretWorld {
    private struct Node {
        var secrets: SharedSecrets
        var isCutOff = false
        var readAt: Int64 = 0
        var sentAt: Int64 = 0
        var round: SecretRound?
        var requests: [SecretRequest] = []
        var answers: [SecretRequest.Answer] = []
    }

    /// Something that was signed, sealed or issued.
    private struct Use {
        let kind: SecretKind
        let name: String
        let until: Int64
    }

    private static let kinds: [SecretKind] = [.signing, .webhook, .ticket]

    private let timing: SecretTiming
    private var random: SplitMix64
    /// Milliseconds of the nodes; the server's clock is another.
    private var now: Int64 = 1_000_000
    private var serverAhead: Int64
    private var rows: [SecretRow] = []
    private var nodes: [Node]
    private var signatures: [Use] = []
    /// The published names as two verifiers have cached them, with the time.
    private var caches: [(names: Set<String>, at: Int64)?] = [nil, nil]
    private var nextName = 0

    private(set) var faults: Set<String> = []
    private(set) var uses = 0
    private(set) var rotations = 0
    private(set) var races = 0
    private(set) var unready = 0
    private(set) var ended = 0

    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
        var timing = SecretTiming()
        timing.cacheTime = Int64(random.pick([60, 120, 300]))
        timing.signatureLifetime = Int64(random.pick([30, 200, 600]))
        timing.signingPeriod = Int64(random.pick([500, 900]))
        timing.ticketPeriod = 400
        self.timing = timing
        serverAhead = Int64(random.below(1_000_000)) - 500_000
        nodes = (0..<3).map { _ in Node(secrets: SharedSecrets(kinds: Self.kinds, timing: timing)) }
    }

    private var serverSeconds: Int64 { (now + serverAhead) / 1_000 }

    mutating func step() {
        now += Int64(random.below(4_000))
        // The clock of a promoted standby may be behind.
        if random.below(500) == 0 { serverAhead -= Int64(random.below(900_000)) }
        for index in nodes.indices {
            if random.below(150) == 0 { nodes[index].isCutOff.toggle() }
            // Most of the time one at most is.
            if nodes.count(where: \.isCutOff) > 1, random.happens(95) {
                nodes[index].isCutOff = false
            }
            turn(index)
        }
        for index in nodes.indices { use(index) }
        verify()
    }

    // MARK: Reading and rotating

    private mutating func turn(_ index: Int) {
        if nodes[index].isCutOff {
            // A request on its way may still arrive; the answer does not.
            if let request = nodes[index].requests.first, random.happens(50) {
                _ = execute(request)
            }
            nodes[index].round = nil
            nodes[index].requests = []
            nodes[index].answers = []
            return
        }
        if nodes[index].round == nil, nodes[index].readAt <= now {
            let name = "\(nextName)"
            nextName += 100
            var round = SecretRound(kinds: Self.kinds, timing: timing) {
                kind throws(SecretError) in
                SecretRound.NewSecret(
                    name: name + kind.rawValue, wrapped: Array((name + kind.rawValue).utf8))
            }
            nodes[index].sentAt = now
            nodes[index].readAt = now + SecretTiming.readInterval * 1_000
            perform(round.begin(), of: index)
            nodes[index].round = round
        }
        while !nodes[index].requests.isEmpty, random.happens(70) {
            let answer = execute(nodes[index].requests.removeFirst())
            nodes[index].answers.append(answer)
        }
        while !nodes[index].answers.isEmpty, random.happens(70) {
            let answer = nodes[index].answers.removeFirst()
            guard let step = nodes[index].round?.receive(.success(answer)) else { return }
            perform(step, of: index)
        }
    }

    private mutating func perform(
        _ step: RoundStep<SecretRequest, SecretRound.Outcome>, of index: Int
    ) {
        switch step {
        case .send(let requests): nodes[index].requests += requests
        case .fail(let error): faults.insert("\(error)")
        case .end(let outcome):
            nodes[index].round = nil
            nodes[index].secrets.receive(
                outcome.rows, serverTime: outcome.serverTime, sentAt: nodes[index].sentAt,
                receivedAt: now
            ) { row throws(SecretError) in
                guard let secret = SecretBytes(count: 1, fill: { _ in true }) else {
                    throw .cryptoFailed
                }
                return secret
            }
        }
    }

    /// Does what the server's functions do.
    private mutating func execute(_ request: SecretRequest) -> SecretRequest.Answer {
        switch request {
        case .read: return .secrets(rows, serverTime: serverSeconds)
        case .dropEnded:
            let count = rows.count
            let now = serverSeconds
            rows.removeAll { row in row.notAfter.map { $0 <= now } ?? false }
            ended += count - rows.count
            return .dropped
        case .add(let addition, let name, let wrapped):
            func ofKind() -> [SecretRow] {
                rows.filter { $0.kind == addition.kind.rawValue }.sorted {
                    $0.notBefore > $1.notBefore
                }
            }
            guard ofKind().first?.name == addition.newest else {
                races += 1
                return .added(false)
            }
            rotations += 1
            // The server's times have fractions, which the table's reader rounds up.
            let begin = serverSeconds + addition.lead + (addition.newest == nil ? 0 : 1)
            rows.append(
                SecretRow(
                    kind: addition.kind.rawValue, name: name, notBefore: begin, wrapped: wrapped))
            let kept = Set(ofKind().prefix(Int(addition.kept)).map(\.name))
            for index in rows.indices
            where rows[index].kind == addition.kind.rawValue && rows[index].notAfter == nil
                && !kept.contains(rows[index].name)
            {
                rows[index].notAfter = begin + addition.grace
            }
            return .added(true)
        }
    }

    // MARK: Using and judging

    private func isReady(_ index: Int) -> Bool { nodes[index].secrets.unreadiness(at: now) == nil }

    private func names(_ kind: SecretKind, at index: Int) -> Set<String> {
        Set(nodes[index].secrets.valid(kind, at: now).map(\.row.name))
    }

    /// A node signs, seals and issues, whether it is ready or not: its streams are open.
    private mutating func use(_ index: Int) {
        if !isReady(index) { unready += 1 }
        for kind in Self.kinds {
            guard let name = nodes[index].secrets.current(kind, at: now)?.row.name else { continue }
            uses += 1
            for other in nodes.indices
            where isReady(other) && !names(kind, at: other).contains(name) {
                faults.insert("\(kind): node \(other) does not have what node \(index) uses")
            }
            if kind == .signing {
                signatures.append(
                    Use(kind: kind, name: name, until: now + timing.signatureLifetime * 1_000))
            }
        }
    }

    /// Signatures are verified until they expire, at every node that is ready and by verifiers that
    /// cached the keys of such a node.
    private mutating func verify() {
        signatures.removeAll { $0.until <= now }
        for index in caches.indices {
            let age = caches[index].map { now - $0.at } ?? .max
            guard age > timing.cacheTime * 1_000 || random.below(50) == 0 else { continue }
            caches[index] = nil
            let ready = nodes.indices.filter { isReady($0) }
            guard !ready.isEmpty else { continue }
            caches[index] = (names(.signing, at: random.pick(ready)), now)
        }
        let needed = Set(signatures.map(\.name))
        for cache in caches.compactMap({ $0 }) where !needed.isSubset(of: cache.names) {
            faults.insert("a verifier does not know a key")
        }
        for index in nodes.indices
        where isReady(index) && !needed.isSubset(of: names(.signing, at: index)) {
            faults.insert("node \(index) does not know a key that it may have to verify")
        }
    }
}
