import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayPostgres

@Suite struct PartitionKeeperModelTests {
    @Test(arguments: 0..<20)
    func noPartitionHasTwoOwnersAndNothingOwedIsForgotten(seed: Int) throws {
        var world = PartitionWorld(seed: UInt64(seed), nodeCount: 3 + seed % 3)
        for _ in 0..<2_000 { world.step() }
        world.settle()
        try world.check()
    }

    /// Shows that the runs above contain what they are for.
    @Test func theModelTakesEveryCourse() {
        var counts: [String: Int] = [:]
        for seed in 0..<8 {
            var world = PartitionWorld(seed: UInt64(seed), nodeCount: 3 + seed % 3)
            for _ in 0..<2_000 { world.step() }
            counts.merge(world.counts, uniquingKeysWith: +)
        }
        for course in [
            "taken", "handed over", "refused flush", "suspended", "clock", "crash of the server",
            "crash of a node", "pause", "cut", "drained", "pushed", "lost",
        ] { #expect(counts[course, default: 0] > 0, "\(course)") }
    }

    /// An operator starts a second process under the login of one that lives.
    @Test(arguments: 0..<6)
    func twoProcessesUnderOneLoginPushTogetherForOneRoundAtMost(seed: Int) throws {
        var world = PartitionWorld(seed: UInt64(seed), nodeCount: 3)
        world.isFaulty = false
        for _ in 0..<150 { world.step() }
        world.start(1)
        for _ in 0..<600 { world.step() }
        #expect(world.counts["replaced", default: 0] > 0)
        // A round, and the way of its answer.
        #expect(world.twinOverlap < 3_000 + 500)
        try world.check()
    }

    @Test func aShareMovesOnlyWhatANodeHasOrWillHave() {
        let nodes: [Int32] = [1, 2, 3, 5]
        func owners(_ nodes: [Int32]) -> [Int32?] {
            Partition.numbers.map { PartitionShare.owner(of: $0, among: nodes) }
        }
        let before = owners(nodes)
        for node in nodes {
            let count = before.count { $0 == node }
            // The standard deviation of a fair share of 1,024 is 28.
            #expect(abs(count - 1_024) < 150)
        }
        for (old, new) in zip(before, owners([1, 2, 3, 4, 5])) { #expect(new == old || new == 4) }
        for (old, new) in zip(before, owners([1, 3, 5])) { #expect(new == old || old == 2) }
        var share = PartitionShare()
        share.update(of: 2, among: nodes)
        #expect(share.numbers.count == before.count { $0 == 2 })
        share.update(of: 4, among: nodes)
        #expect(share.numbers.isEmpty)
        // Every node of every version has to compute the same.
        #expect((0..<8).map { before[$0] } == [2, 2, 1, 5, 3, 2, 5, 5])
    }
}

/// Three to five nodes before one ``ScriptedPartitions``, each with an owner that pushes.
private struct PartitionWorld {
    /// A process of a node.
    private struct Actor {
        let node: Int32
        var keeper: PartitionKeeper
        var session = 0
        var isOpen = false
        /// Whether packets are lost until the keeper gives up.
        var isCut = false
        var requests: [PartitionRequest] = []
        var answers: [Result<PartitionAnswer, PostgresError>] = []
        var pausedUntil: Int64 = 0
        /// The length of the stop that follows its next renewal; 0 for none.
        var pauseAtRenewal: Int64 = 0
        var isDraining = false
        /// The time since which the node has worked without a fault.
        var healthySince: Int64

        // The owner of the push state.
        var pushEnd: Int64 = .min
        var loading: [Partition: [PushStateRow]] = [:]
        var clears: [Partition: Int64] = [:]
        var owned: [Partition: [String: PushStateRow]] = [:]
        var settling: [(partition: Partition, at: Int64)] = []
    }

    private static let numbers: [Int32] = [0, 1, 2, 3, 4, 5, 6, 7, 4_096]
    private static let clientsPerPart = 5

    private var random: SplitMix64
    private var now: Int64 = 100_000
    private var server = ScriptedPartitions(numbers: numbers)
    private var actors: [Actor] = []
    private var nextSession = 1
    /// The sequence of the newest change, and the changes that concern a client.
    private var head: Int64 = 0
    private var changes: [PartitionedClient: [Int64]] = [:]
    private var pushed: [PartitionedClient: Set<Int64>] = [:]
    /// The clients whose budget is spent, until when.
    private var blocked: [PartitionedClient: Int64] = [:]
    /// The sequence up to which it was judged whether changes were forgotten.
    private var judged: [PartitionedClient: Int64] = [:]
    private var orphanSince: [Int32: Int64] = [:]
    private var lastFault: Int64 = 0
    private(set) var counts: [String: Int] = [:]
    private var faults: [String] = []
    var isFaulty = true
    /// The longest time in which two processes of one node pushed for a partition.
    private(set) var twinOverlap: Int64 = 0
    private var twinsSince: [Int32: Int64] = [:]
    private let nodeCount: Int

    init(seed: UInt64, nodeCount: Int) {
        random = SplitMix64(seed: seed)
        self.nodeCount = nodeCount
        for node in 1...nodeCount { start(Int32(node)) }
    }

    /// Starts a process of a node.
    mutating func start(_ node: Int32) {
        var keeper = PartitionKeeper(
            .quorum, position: LogPosition(last: 0, chain: 1),
            share: PartitionShare(of: Self.numbers), at: now, using: &random)
        _ = keeper.observeWriter(startedAt: server.startedAt, at: now, using: &random)
        _ = keeper.serve(at: now)
        actors.append(Actor(node: node, keeper: keeper, healthySince: now))
    }

    // MARK: Steps

    mutating func step() {
        now += Int64(20 + random.below(80))
        for index in actors.indices.reversed() {
            deliverRequests(of: index)
            if actors[index].pausedUntil > now { continue }
            deliverAnswers(to: index)
            tick(index)
            own(index)
        }
        addChanges()
        // Half a minute with faults, half a minute without.
        if isFaulty, now / 30_000 % 2 == 0, random.happens(4) {
            lastFault = now
            disturb()
        }
        judge()
    }

    private mutating func disturb() {
        let index = random.below(actors.count)
        switch random.below(12) {
        case 0, 1, 2:
            count("pause")
            let pause = Int64(random.below(20_000))
            if random.happens(50) {
                actors[index].pauseAtRenewal = pause
                actors[index].healthySince = now + 3_000 + pause
            } else {
                actors[index].pausedUntil = now + pause
                actors[index].healthySince = actors[index].pausedUntil
            }
        case 3, 4:
            count("cut")
            actors[index].isCut = actors[index].isOpen
            actors[index].healthySince = now + 8_000
        case 5:
            count("cut")
            disconnect(index)
            actors[index].healthySince = now + 4_000
        case 6 where random.happens(50):
            count("clock")
            server.offset = [0, 3_600_000, -3_600_000][random.below(3)]
        case 7 where random.happens(50):
            count("crash of the server")
            server.crash()
            for index in actors.indices {
                disconnect(index)
                actors[index].healthySince = max(actors[index].healthySince, now + 4_000)
                perform(
                    actors[index].keeper.observeWriter(
                        startedAt: server.startedAt, at: now, using: &random), of: index)
            }
        case 8, 9:
            count("crash of a node")
            let node = actors.remove(at: index).node
            // At once, later, or never.
            if random.happens(60) { start(node) }
        case 10:
            guard !actors[index].isDraining else { break }
            actors[index].isDraining = true
            perform(actors[index].keeper.drain(at: now), of: index)
        default:
            guard let node = (1...Int32(nodeCount)).first(where: isGone) else { break }
            start(node)
        }
        if actors.isEmpty { start(1) }
    }

    private func isGone(_ node: Int32) -> Bool { !actors.contains { $0.node == node } }

    private mutating func count(_ course: String) { counts[course, default: 0] += 1 }

    /// Ends all faults; all nodes are there in the end and have their shares.
    mutating func settle() {
        isFaulty = false
        for index in actors.indices.reversed() {
            (actors[index].pausedUntil, actors[index].pauseAtRenewal) = (0, 0)
            if actors[index].isDraining { actors.remove(at: index) }
        }
        for node in 1...Int32(nodeCount) where isGone(node) { start(node) }
        let end = now + 45_000
        while now < end { step() }
        let nodes = (1...Int32(nodeCount)).map { $0 }
        for number in Self.numbers {
            let owners = actors.filter { $0.owned.keys.contains { $0.number == number } }
            let wanted = PartitionShare.owner(of: number, among: nodes)
            if owners.map(\.node) != [wanted] {
                faults.append("\(number) belongs to \(owners.map(\.node)), wanted \(wanted ?? 0)")
            }
        }
    }

    // MARK: Messages

    private mutating func deliverRequests(of index: Int) {
        while actors[index].isOpen, !actors[index].isCut, !actors[index].requests.isEmpty,
            random.happens(85)
        {
            let request = actors[index].requests.removeFirst()
            let actor = actors[index]
            let answer = server.execute(
                request, node: actor.node, session: actor.session, at: now)
            if case .success(.flushed(let lost)) = answer, !lost.isEmpty { count("refused flush") }
            if case .success(.taken(let taken)) = answer, !taken.isEmpty { count("taken") }
            actors[index].answers.append(answer)
        }
    }

    private mutating func deliverAnswers(to index: Int) {
        while actors[index].isOpen, !actors[index].isCut, !actors[index].answers.isEmpty,
            random.happens(85)
        {
            let answer = actors[index].answers.removeFirst()
            perform(
                actors[index].keeper.receive(.answered(answer), at: now, using: &random), of: index)
        }
    }

    private mutating func tick(_ index: Int) {
        guard let tick = actors[index].keeper.nextTick, tick <= now else { return }
        perform(actors[index].keeper.tick(at: now, using: &random), of: index)
        if let next = actors[index].keeper.nextTick, next <= now {
            // A second turn ends what is due, or the loop of a node would never wait.
            perform(actors[index].keeper.tick(at: now, using: &random), of: index)
            if let next = actors[index].keeper.nextTick, next <= now {
                faults.append("a tick does nothing at \(now)")
            }
        }
    }

    private mutating func disconnect(_ index: Int) {
        guard actors[index].isOpen else { return }
        close(index)
        perform(
            actors[index].keeper.receive(
                .disconnected(.connectionLost(reason: "cut")), at: now, using: &random), of: index)
    }

    private mutating func close(_ index: Int) {
        // The server still executes some of what was sent.
        for request in actors[index].requests where random.happens(50) {
            _ = server.execute(
                request, node: actors[index].node, session: actors[index].session, at: now)
        }
        (actors[index].requests, actors[index].answers) = ([], [])
        (actors[index].isOpen, actors[index].isCut) = (false, false)
    }

    private mutating func perform(_ actions: [PartitionKeeper.Action], of index: Int) {
        for action in actions {
            switch action {
            case .connect:
                actors[index].isOpen = true
                actors[index].session = nextSession
                nextSession += 1
                perform(
                    actors[index].keeper.receive(.connected, at: now, using: &random), of: index)
            case .disconnect: close(index)
            case .send(let requests):
                actors[index].requests += requests
                if actors[index].pauseAtRenewal > 0, requests.contains(where: \.isRenewal) {
                    actors[index].pausedUntil = now + actors[index].pauseAtRenewal
                    actors[index].pauseAtRenewal = 0
                    lastFault = now
                }
            case .extendLease(let end): actors[index].pushEnd = end
            case .suspend:
                count("suspended")
                actors[index].pushEnd = .min
            case .acquire(let partition): actors[index].loading[partition] = []
            case .deliver(let portion):
                guard case .states(let rows, let clear) = portion.rows else { break }
                actors[index].loading[portion.partition]? += rows
                actors[index].clears[portion.partition] = clear
            case .finishLoading(let partition): finishLoading(partition, of: index)
            case .handOver(let partitions):
                count("handed over")
                for partition in partitions {
                    actors[index].settling.append((partition, now + Int64(random.below(300))))
                }
            case .lose(let partitions):
                count("lost")
                for partition in partitions {
                    actors[index].owned[partition] = nil
                    actors[index].loading[partition] = nil
                    actors[index].settling.removeAll { $0.partition == partition }
                }
            case .finishDraining:
                count("drained")
                if !actors[index].owned.isEmpty { faults.append("drained with partitions") }
            case .becomeUnready(.disconnected(.fenced)): count("replaced")
            case .becomeUnready(.tailLost): faults.append("a tail was lost that nobody cut")
            case .becomeReady, .becomeUnready, .complete: break
            }
        }
    }

    // MARK: Owners

    private mutating func addChanges() {
        guard random.happens(60) else { return }
        head += 1
        let client = PartitionedClient(
            part: Self.numbers[random.below(Self.numbers.count - 1)],
            name: ClientName(app: "a", client: "\(random.below(Self.clientsPerPart))"))
        changes[client, default: []].append(head)
    }

    private mutating func finishLoading(_ partition: Partition, of index: Int) {
        let clear = actors[index].clears[partition] ?? 0
        var rows: [String: PushStateRow] = [:]
        for client in 0..<Self.clientsPerPart {
            rows["\(client)"] = PushStateRow(
                name: ClientName(app: "a", client: "\(client)"), told: clear, isOwed: false,
                payload: [])
        }
        for row in actors[index].loading[partition] ?? [] where row.isOwed || row.told > clear {
            rows[row.name.client] = row
        }
        actors[index].loading[partition] = nil
        actors[index].owned[partition] = rows
    }

    /// Pushes what is owed, or notes that it is.
    private mutating func own(_ index: Int) {
        for (partition, at) in actors[index].settling where at <= now {
            actors[index].owned[partition] = nil
            perform(actors[index].keeper.settle(partition, at: now), of: index)
        }
        actors[index].settling.removeAll { $0.at <= now }
        let settling = Set(actors[index].settling.map(\.partition))
        guard now < actors[index].pushEnd else { return }
        // In order, so that a seed gives the same run each time.
        for (partition, rows) in actors[index].owned.sorted(by: { $0.key.number < $1.key.number })
        where partition.lease == nil && !settling.contains(partition) {
            for (name, row) in rows.sorted(by: { $0.key < $1.key }) {
                let client = PartitionedClient(part: partition.number, name: row.name)
                guard let last = changes[client]?.last, last > row.told else { continue }
                let owed = changes[client, default: []].filter { $0 > row.told }
                if random.happens(10), blocked[client] == nil {
                    blocked[client] = now + Int64(random.below(60_000))
                }
                let isBlocked = blocked[client].map { $0 > now } ?? false
                let isPushed = !isBlocked && random.happens(50)
                if !isBlocked { blocked[client] = nil }
                if isPushed {
                    count("pushed")
                    pushed[client, default: []].formUnion(owed)
                } else if row.isOwed {
                    continue
                }
                let next = PushStateRow(
                    name: row.name, told: isPushed ? last : row.told, isOwed: !isPushed,
                    payload: [1])
                actors[index].owned[partition]?[name] = next
                perform(
                    actors[index].keeper.note(told: [next], of: partition, at: now), of: index)
            }
            actors[index].keeper.note(clear: head, of: partition)
        }
    }

    // MARK: Judge

    /// Whether a process pushes for a partition now, or would if there were something.
    private func pushes(_ actor: Actor, _ number: Int32) -> Bool {
        actor.pausedUntil <= now && now < actor.pushEnd
            && actor.owned.keys.contains { partition in
                partition.number == number
                    && !actor.settling.contains { $0.partition == partition }
            }
    }

    private mutating func judge() {
        let healthy = actors.filter { !$0.isDraining && $0.healthySince <= now }
            .map(\.healthySince).min()
        for number in Self.numbers {
            let owners = actors.filter { pushes($0, number) }
            if owners.count > 1, Set(owners.map(\.node)).count == 1 {
                let since = twinsSince[number] ?? now
                twinsSince[number] = since
                twinOverlap = max(twinOverlap, now - since + 1)
            } else {
                twinsSince[number] = nil
            }
            if Set(owners.map(\.node)).count > 1 {
                faults.append("\(number) is pushed by \(owners.map(\.node)) at \(now)")
            }
            guard owners.isEmpty, let healthy else {
                orphanSince[number] = nil
                continue
            }
            let since = max(orphanSince[number] ?? now, healthy, lastFault)
            orphanSince[number] = since
            // The lease, one round of a healthy node, and its first connection. A node that has just
            // come or woken, and is wanted, sees for itself that the owner is silent.
            let bound = 10_000 + 3_000 + 3_000 + PartitionKeeper.pushMilliseconds
            if now - since > bound {
                faults.append("\(number) is orphaned since \(since) at \(now)")
                orphanSince[number] = now
            }
        }
        for client in Array(changes.keys) {
            let clear = server.owners[client.part]?.clear ?? 0
            let row = server.states[client]
            findForgotten(
                of: client,
                through: row?.isOwed == true ? row?.told ?? 0 : max(row?.told ?? 0, clear))
        }
    }

    /// Records a fault for each change that counts as told and was pushed by nobody.
    private mutating func findForgotten(of client: PartitionedClient, through told: Int64) {
        guard told > judged[client] ?? 0 else { return }
        judged[client] = told
        for change in changes[client, default: []] where change <= told {
            if pushed[client]?.contains(change) != true {
                faults.append("\(change) of \(client.part) is forgotten at \(now)")
                pushed[client, default: []].insert(change)
            }
        }
    }

    func check() throws {
        var faults = faults + server.faults
        for (partition, processes) in server.writers where processes.count > 1 {
            faults.append("\(partition) was flushed by two processes")
        }
        guard faults.isEmpty else {
            throw TestFailure("\(faults.count): " + faults.prefix(8).joined(separator: "\n"))
        }
    }
}
