import APNsSimulator
import GatewayCore
import GatewayStorage
import GatewayTestSupport
import WidgetModel

@testable import GatewayEngine
@testable import GatewayServer

/// Checks the push scheduler's actions against the rules, and against APNs' own record.
struct StormJudge {
    let storm: Storm
    let record: PushRecord
    let sandbox: PushRecord
    let pushes: [ClientKey: [StormLedger.Push]]
    /// The faults found, a few of each kind.
    private(set) var faults: [String: [String]] = [:]

    init(_ storm: Storm) {
        self.storm = storm
        record = storm.world.server.record
        sandbox = storm.world.sandbox.record
        pushes = storm.world.ledger.pushes
    }

    private mutating func blame(
        _ what: String, _ device: StormDevice, _ detail: @autoclosure () -> String = ""
    ) {
        guard faults[what, default: []].count < 3 else { return }
        faults[what, default: []].append("\(device.key.client) (\(device.faults.name)) \(detail())")
    }

    // MARK: Each push

    /// Checks that no push is repeated that must not be, or sooner than allowed.
    mutating func judgePushes() {
        for device in storm.devices {
            let pushes = pushes[device.key] ?? []
            let changes = storm.changes(of: device)
            for (push, next) in zip(pushes, pushes.dropFirst()) {
                judge(next, after: push, of: device, changes)
            }
            judgeEnvironments(pushes, of: device)
            judgeBudget(pushes.filter { $0.verdict == .delivered }, of: device)
        }
    }

    private mutating func judge(
        _ next: StormLedger.Push, after push: StormLedger.Push, of device: StormDevice,
        _ changes: [Int64]
    ) {
        let isOther = next.token != push.token
        let hasChanged = changes.contains { $0 >= push.began && $0 <= next.began }
        var detail: String { "\(push) then \(next)" }
        switch push.verdict {
        case .delivered:
            // A push is repeated, after a while, for clients that usually answer.
            let isRepeat = device.answers && next.began - push.ended >= 300_000
            if !hasChanged, !isRepeat, !isOther { blame("said twice", device, detail) }
        case .giveUp:
            if !hasChanged, !isOther { blame("refused for good, and made again", device, detail) }
        case .dropAddress, .quarantineAddress:
            if !isOther { blame("pushed to a dead address", device, detail) }
        case .stop:
            blame("pushed though stopped", device, detail)
        case .tryOtherEnvironment:
            if !isOther, next.environment == push.environment {
                blame("not in the other environment", device, detail)
            }
        case .retry(let wait):
            let least = wait.milliseconds(
                failures: push.failures, urgency: .high, random: 0)
            if next.began - push.ended < least { blame("made again too soon", device, detail) }
        }
    }

    /// Checks that a token is tried in the other environment once, and stays where it worked.
    private mutating func judgeEnvironments(
        _ pushes: [StormLedger.Push], of device: StormDevice
    ) {
        for (_, pushes) in Dictionary(grouping: pushes, by: \.token) {
            let tries = pushes.count { $0.verdict == .tryOtherEnvironment }
            if tries > 1 { blame("tried \(tries) times in the other environment", device) }
            let worked = Set(pushes.filter { $0.verdict == .delivered }.map(\.environment))
            if worked.count > 1 || worked.contains(device.isStray ? .production : .sandbox) {
                blame("worked in an environment it is not of", device)
            }
            let left = pushes.drop { $0.verdict != .delivered }
            if Set(left.map(\.environment)).count > 1 { blame("left where it worked", device) }
        }
    }

    private mutating func judgeBudget(_ taken: [StormLedger.Push], of device: StormDevice) {
        for (push, next) in zip(taken, taken.dropFirst()) where push.token == next.token {
            if next.began - push.began < 300_000 { blame("interval", device, "\(push) \(next)") }
        }
        for (place, push) in taken.enumerated() where place + 48 < taken.count {
            let next = taken[place + 48]
            if next.token == push.token, next.began - push.began < 86_400_000 {
                blame("more than 48 in a day", device)
            }
        }
    }

    // MARK: Each device

    /// Checks that every device is accounted for, after everything is over.
    ///
    /// - Parameter attempts: The last persisted attempt for each client.
    /// - Returns: The number of devices of each sort.
    mutating func judgeDevices(
        _ standings: [ClientKey: DeliveryAttempts.Status],
        _ attempts: [ClientKey: PushAttemptRow]
    ) -> [String: Int] {
        var counts: [String: Int] = [:]
        for device in storm.devices {
            let attempt = attempts[device.key]
            let last = storm.changes(of: device).last
            var why: String { "\(attempt?.outcome ?? "never") \(attempt?.reason ?? "")" }
            let sort: String
            switch standings[device.key] {
            case .told?:
                sort = "told"
                let own = device.isStray ? sandbox : record
                let at = device.tokens.compactMap { own.devices[$0]?.pushes.last?.at }.max()
                if let last, at ?? 0 < storm.world.clock.wall(at: last) {
                    blame("told, but not of its last change", device)
                }
            case .confirmed?:
                sort = "confirmed"
                if !device.answers, last != nil { blame("confirmed by nobody", device) }
            case .withheld(.max)?:
                sort = "stopped"
                if !isStopped(device) { blame("stopped without a reason", device, why) }
            case .refused?:
                sort = "refused"
                if attempt?.outcome != "given-up" { blame("refused", device, why) }
                if attempt?.reason == nil { blame("refused without a reason", device, why) }
            case .unreachable?:
                sort = "quarantined"
                if attempt?.outcome != "quarantined" { blame("unreachable", device, why) }
            case nil:
                sort = "dead"
                let isDead = record.devices[device.tokens.last ?? ""]?.isDead ?? false
                if attempt?.outcome != "dropped" || !isDead { blame("dead", device, why) }
                if attempt?.reason == nil { blame("dead without a reason", device, why) }
            case .underWay?, .waiting?, .withheld?:
                sort = "unfinished"
                blame("unfinished", device, why)
            }
            counts[sort, default: 0] += 1
        }
        return counts
    }

    private func isStopped(_ device: StormDevice) -> Bool {
        record.answers.keys.contains {
            $0.reason == device.faults.name
                && StormFaults.stopping.map(\.rawValue).contains(device.faults.name)
        }
    }

    /// The number of excused pushes to dead tokens: as far as can be told here, APNs had rejected
    /// the token before, but its answer was lost.
    var excusedPushes: Int {
        pushes.values.reduce(0) { count, pushes in
            count
                + zip(pushes, pushes.dropFirst()).count { push, next in
                    push.token == next.token && push.verdict == .retry(.connection)
                        && [.dropAddress, .quarantineAddress, .tryOtherEnvironment].contains(
                            next.verdict)
                }
        }
    }

    // MARK: Provider tokens

    /// Checks that each key gets a new token every 55 minutes at most, and never two within 20.
    mutating func judgeProviderTokens() {
        let tokens = Set(record.providerTokens).union(sandbox.providerTokens)
        for (key, tokens) in Dictionary(grouping: tokens, by: \.keyID) {
            let times = tokens.map(\.issuedAt).sorted()
            for (one, next) in zip(times, times.dropFirst()) where next - one < 1_200 {
                faults["provider tokens too soon", default: []].append("\(key): \(next - one) s")
            }
        }
    }
}
