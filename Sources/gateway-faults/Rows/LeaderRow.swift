import APNsSimulator
import ClusterTestSupport
import Foundation
import GatewayTestSupport

/// Why a leader is away.
private enum Absence: String, CaseIterable {
    case killed, paused
    case cutOff = "cut off"
}

extension RowContext {
    /// The leader is killed, stopped for 20 s and cut off from the database, in turn, each time
    /// amid the pushes for a change: another one has to write and to push before it is back.
    func leaderAway() throws {
        let cluster = try FaultCluster(hasProxies: true, pushes: true)
        // A stopped node carries registrations out late; see ``nodesStopped()``.
        let campaign = try startCampaign(on: cluster) { $0.changesRegistrations = false }
        let phones = try Phones(cluster)
        let generation = try cluster.leader().generation
        let turn = generator.below(Absence.allCases.count)
        let order = Absence.allCases[turn...] + Absence.allCases[..<turn]
        var waits: [Absence: [Double]] = [:]
        var (changes, left) = (0, 0)
        try repeatFault(on: campaign) {
            // However short the run is.
            for absence in order {
                let index = try cluster.leader().index
                let leader = cluster.nodes[index]
                let before = phones.taken
                let (batch, subjects) = campaign.openBatch(phones.shown)
                _ = try campaign.postUntilAccepted(batch, subjects)
                changes += 1
                pauseRandomly(0, 0.03)
                let start = campaign.recorder.now
                switch absence {
                case .killed: leader.kill()
                case .paused: leader.signal(SIGSTOP)
                case .cutOff: cluster.proxies[index].silence()
                }
                left += phones.missing(since: before)
                let end = try campaign.firstAcceptance(
                    at: cluster.nodes.filter { $0 !== leader })
                waits[absence, default: []].append(end - start)
                try blockUntil(
                    "pushed to each device after the leader was \(absence.rawValue)",
                    details: { "\(phones.missing(since: before)) were not" }
                ) { phones.missing(since: before) == 0 }
                switch absence {
                case .killed: try leader.start()
                case .paused:
                    pause(seconds: max(0, start + 20 - campaign.recorder.now))
                    leader.signal(SIGCONT)
                case .cutOff: cluster.proxies[index].resume()
                }
                try blockUntil("ready after it was \(absence.rawValue)") {
                    leader.status(of: "/readyz") == 200
                }
                // A catalog that it received meanwhile is followed by another one.
                pauseRandomly(1, 3)
            }
        }
        try campaign.judgeStored()
        try cluster.judge(campaign.recorder)
        // A new leader repeats what the one before has not written down.
        let leaders = try cluster.leader().generation - generation
        let pushes = phones.mostPushes
        campaign.recorder.require(
            pushes <= changes + Int(leaders),
            "a device got \(pushes) pushes for \(changes) changes and \(leaders) new leaders")
        for absence in Absence.allCases {
            let (name, times) = (absence.rawValue, (waits[absence] ?? []).sorted())
            report(name, times.count)
            report(
                "\(name): median seconds until a post is accepted", seconds: times[times.count / 2])
            report("\(name): most", seconds: times[times.count - 1])
        }
        report("devices without their push at a fault", left)
    }
}

/// Devices without a stream. Only this row changes the character that each shows, so no other
/// change makes up for a lost push.
private struct Phones {
    private static let numbers = 0..<20
    private static let tokens = numbers.map { String(repeating: "a", count: 60) + "\(1_000 + $0)" }
    private let apns: APNsServer
    let shown: [Subject]

    init(_ cluster: FaultCluster) throws {
        guard let apns = cluster.gateways.apns else { throw TestFailure("nothing is pushed") }
        self.apns = apns
        shown = Self.numbers.map { .character("star-\($0)") }
        for number in Self.numbers {
            let answer = try cluster.gateways.register(
                "phone-\(number)", ["star-\(number)"], pushToken: Self.tokens[number],
                at: cluster.next)
            guard [200, 201].contains(answer.status) else { throw TestFailure(answer.text) }
        }
    }

    /// The number of pushes to each.
    var taken: [Int] {
        let devices = apns.record.devices
        return Self.tokens.map { devices[$0]?.taken ?? 0 }
    }

    /// Returns how many have not been pushed to since they had so many pushes.
    func missing(since before: [Int]) -> Int {
        zip(taken, before).count { $0.0 == $0.1 }
    }

    /// The most pushes to one of them; a push that was sent again by the same node counts once.
    var mostPushes: Int {
        apns.record.devices.values.map { Set($0.pushes.map(\.id)).count }.max() ?? 0
    }
}
