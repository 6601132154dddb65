import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct ConnectionSchedulerTests {
    typealias Step = ConnectionScheduler.Step

    private func lanes(
        lanesMax: Int = 2, windowMax: Int = 3, usesTokens: Bool = true, patience: Int64 = 5_000,
        waitingMax: Int = 100, waiting count: UInt64 = 0
    ) -> ConnectionScheduler {
        var lanes = ConnectionScheduler(
            ConnectionScheduler.Terms(
                lanesMax: lanesMax, windowMax: windowMax, usesTokens: usesTokens,
                patience: patience, waitingMax: waitingMax))
        for push in 0..<count { _ = lanes.add(push) }
        return lanes
    }

    private func steps(_ lanes: inout ConnectionScheduler, now: Int64 = 0, token: UInt64? = 1)
        -> [Step]
    {
        var steps: [Step] = []
        while let step = lanes.next(now: now, random: 0, token: token) {
            steps.append(step)
            if case .wait = step { break }
        }
        return steps
    }

    @Test func `the first push opens a connection and goes alone until it was taken`() {
        var lanes = lanes(waiting: 4)
        #expect(
            steps(&lanes) == [.send(push: 0, lane: 1, opens: true), .wait(until: 10_000)])
        lanes.connected(1)
        #expect(steps(&lanes, now: 10) == [.wait(until: 10_000)])
        lanes.ended(on: 1, .refused)
        #expect(
            steps(&lanes, now: 20) == [
                .send(push: 1, lane: 1, opens: false), .wait(until: 10_020),
            ])
        lanes.ended(on: 1, .taken)
        #expect(
            steps(&lanes) == [
                .send(push: 2, lane: 1, opens: false), .send(push: 3, lane: 1, opens: false),
            ])
    }

    @Test func `a connection with a certificate is open to all at once`() {
        var lanes = lanes(usesTokens: false, waiting: 4)
        #expect(
            steps(&lanes, token: nil) == [
                .send(push: 0, lane: 1, opens: true), .wait(until: 10_000),
            ])
        lanes.connected(1)
        #expect(
            steps(&lanes, token: nil).prefix(2) == [
                .send(push: 1, lane: 1, opens: false), .send(push: 2, lane: 1, opens: false),
            ])
    }

    @Test func `another connection is opened when all are full, at the pace that is allowed`() {
        var lanes = lanes(waiting: 9)
        _ = steps(&lanes)
        lanes.ended(on: 1, .taken)
        let full = steps(&lanes)
        #expect(full.count == 4 && full.last == .wait(until: 1_000))
        #expect(
            steps(&lanes, now: 1_000) == [
                .send(push: 4, lane: 2, opens: true), .wait(until: 11_000),
            ])
        lanes.ended(on: 2, .taken)
        #expect(steps(&lanes, now: 9_000).count == 3)
        // The number of connections is limited, so the last push waits.
        #expect(lanes.waitingCount == 1 && lanes.underWayCount == 6)
        #expect(steps(&lanes, now: 99_000) == [])
    }

    @Test func `the emptiest connection is used`() {
        var lanes = lanes(waiting: 8)
        _ = steps(&lanes)
        lanes.ended(on: 1, .taken)
        _ = steps(&lanes)
        _ = steps(&lanes, now: 2_000)
        lanes.ended(on: 2, .taken)
        #expect(
            steps(&lanes, now: 2_000) == [
                .send(push: 5, lane: 2, opens: false), .send(push: 6, lane: 2, opens: false),
                .send(push: 7, lane: 2, opens: false),
            ])
    }

    @Test func `a retired connection is closed when nothing is under way on it`() {
        var lanes = lanes(waiting: 5)
        _ = steps(&lanes)
        lanes.ended(on: 1, .taken)
        _ = steps(&lanes)
        lanes.retire(1)
        #expect(steps(&lanes, now: 2_000) == [.send(push: 4, lane: 2, opens: true)])
        for _ in 0..<3 { lanes.ended(on: 1, .taken) }
        #expect(steps(&lanes, now: 2_000) == [.close(lane: 1)])
        #expect(lanes.usableCount == 1)
    }

    @Test(arguments: [nil, .failed(.connectionEnded)] as [APNsOutcome?])
    func `a connection that never was is not used again`(ending: APNsOutcome?) {
        var lanes = lanes(waiting: 2)
        _ = steps(&lanes)
        lanes.ended(on: 1, ending)
        #expect(
            steps(&lanes, now: 1_000) == [
                .close(lane: 1), .send(push: 1, lane: 2, opens: true),
            ])
    }

    @Test func `what the peer allows counts, if it is less`() {
        var lanes = lanes(lanesMax: 1, windowMax: 5, waiting: 12)
        _ = steps(&lanes)
        lanes.allowed(1_000, on: 1)
        #expect(steps(&lanes, now: 1) == [.wait(until: 10_000)])
        lanes.ended(on: 1, .taken)
        lanes.allowed(2, on: 1)
        #expect(steps(&lanes).count == 2)
        lanes.allowed(4, on: 1)
        #expect(steps(&lanes).count == 2)
        lanes.allowed(1_000, on: 1)
        #expect(steps(&lanes).count == 1)
        // A push that is already in flight is not taken back.
        lanes.allowed(3, on: 1)
        for _ in 0..<2 { lanes.ended(on: 1, .taken) }
        #expect(steps(&lanes) == [])
        lanes.ended(on: 1, .taken)
        #expect(steps(&lanes).count == 1)
    }

    @Test(arguments: [APNsOutcome.refused, .taken])
    func `a peer that allows no streams is waited for no longer than any other`(
        ending: APNsOutcome?
    ) {
        var lanes = lanes(lanesMax: 1, waiting: 2)
        _ = steps(&lanes)
        lanes.ended(on: 1, ending)
        lanes.allowed(0, on: 1)
        #expect(steps(&lanes, now: 20) == [.wait(until: 10_000)])
        #expect(
            steps(&lanes, now: 10_000) == [
                .close(lane: 1), .send(push: 1, lane: 2, opens: true),
            ])
    }

    @Test func `a connection that does not prove itself in time is not waited for`() {
        var lanes = lanes(waiting: 2)
        _ = steps(&lanes)
        #expect(steps(&lanes, now: 9_999) == [.wait(until: 10_000)])
        #expect(steps(&lanes, now: 10_000) == [.send(push: 1, lane: 2, opens: true)])
        lanes.ended(on: 1, .taken)
        #expect(steps(&lanes, now: 10_000) == [.close(lane: 1)])
    }

    @Test func `pushes are refused when no connection may be opened for long`() {
        var lanes = lanes(patience: 3_000)
        var refused = 0
        var opened: [Int64] = []
        for second in 0..<60 as Range<Int64> {
            _ = lanes.add(UInt64(second))
            for step in steps(&lanes, now: second * 1_000) {
                switch step {
                case .send(_, let lane, true):
                    opened.append(second)
                    lanes.ended(on: lane, .failed(.notConnected))
                case .refuse: refused += 1
                default: break
                }
            }
        }
        #expect(opened == [0, 1, 3, 7, 15, 31])
        #expect(refused > 30)
        #expect(lanes.waitingCount <= 4)
    }

    @Test func `no more wait than may`() {
        var lanes = lanes(waitingMax: 2, waiting: 2)
        let isAdded = lanes.add(9)
        #expect(!isAdded)
        lanes.addAgain(7)
        #expect(lanes.waitingCount == 3)
        let removed = lanes.removeWaiting()
        #expect(removed == [7, 0, 1] && lanes.waitingCount == 0)
    }

    @Test(arguments: [(19 as Int64, false), (20, true)])
    func `a new provider token needs a new connection unless the old one was long in use`(
        minutes: Int64, isKept: Bool
    ) {
        var lanes = lanes(waiting: 2)
        _ = steps(&lanes)
        lanes.ended(on: 1, .taken)
        let now = minutes * 60_000
        let expected: [Step] =
            isKept
            ? [.send(push: 1, lane: 1, opens: false)]
            : [.close(lane: 1), .send(push: 1, lane: 2, opens: true)]
        #expect(steps(&lanes, now: now, token: 2) == expected)
        // From there the wait counts anew.
        _ = lanes.add(9)
        lanes.ended(on: isKept ? 1 : 2, .taken)
        let next = steps(&lanes, now: now + 60_000, token: 3)
        #expect(
            next == [
                .close(lane: isKept ? 1 : 2),
                .send(push: 9, lane: isKept ? 2 : 3, opens: true),
            ])
    }

    /// Whatever happens, every push is sent or refused exactly once, no connection carries more
    /// than it may, only one at a time is unproven, and none is opened within a second of another.
    @Test(arguments: 0..<200 as Range<UInt64>)
    func `nothing is lost and no bound is broken`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let usesTokens = random.happens(70)
        var lanes = lanes(
            lanesMax: 1 + random.below(3), windowMax: 1 + random.below(4), usesTokens: usesTokens,
            waitingMax: 1_000)
        let terms = (lanesMax: 3, windowMax: 4)
        var now: Int64 = 0
        var token: UInt64 = 1
        var added: UInt64 = 0
        var underWay: [UInt64: [UInt64]] = [:]
        var proven: Set<UInt64> = []
        var closed: Set<UInt64> = []
        var done: [UInt64: Int] = [:]
        var lastOpening = Int64.min
        for _ in 0..<400 {
            switch random.below(10) {
            case 0...3:
                _ = lanes.add(added)
                added += 1
            case 4: now += Int64(random.below(3_000))
            case 5 where random.happens(10): token += 1
            case 6 where random.happens(20): lanes.retire(UInt64(random.below(20)))
            case 7 where random.happens(20):
                lanes.allowed(random.below(6), on: UInt64(random.below(20)))
            default:
                guard let lane = underWay.keys.sorted().randomElement(using: &random),
                    let push = underWay[lane]?.popLast()
                else { continue }
                if underWay[lane]?.isEmpty == true { underWay[lane] = nil }
                let ending = random.pick([
                    APNsOutcome.taken, .taken, .refused, .failed(.connectionEnded), nil,
                ])
                lanes.ended(on: lane, ending)
                if ending == .taken { proven.insert(lane) }
                if ending == nil { lanes.addAgain(push) } else { done[push, default: 0] += 1 }
            }
            while let step = lanes.next(now: now, random: random.next(), token: token) {
                switch step {
                case .send(let push, let lane, let opens):
                    #expect(!closed.contains(lane))
                    if opens {
                        #expect(lastOpening == .min || now - lastOpening >= 1_000)
                        #expect(underWay[lane] == nil)
                        lastOpening = now
                    }
                    underWay[lane, default: []].append(push)
                    let count = underWay[lane]?.count ?? 0
                    #expect(count <= (usesTokens && !proven.contains(lane) ? 1 : terms.windowMax))
                case .refuse(let push): done[push, default: 0] += 1
                case .close(let lane):
                    #expect(underWay[lane] == nil)
                    closed.insert(lane)
                case .wait(let until): #expect(until > now)
                }
                if case .wait = step { break }
            }
            #expect(lanes.usableCount <= terms.lanesMax)
            #expect(lanes.underWayCount == underWay.values.reduce(0) { $0 + $1.count })
        }
        let left = lanes.waitingCount + lanes.underWayCount
        #expect(done.values.allSatisfy { $0 == 1 } && done.count + left == Int(added))
    }
}

extension APNsOutcome {
    fileprivate static let taken = APNsOutcome.answered(status: 200)
    fileprivate static let refused = APNsOutcome.answered(status: 400)
}
