import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct AppQuotaTests {
    private static func refusal(_ check: () throws(AppQuota.Rejection) -> Void) -> AppQuota
        .Rejection?
    {
        do throws(AppQuota.Rejection) {
            try check()
            return nil
        } catch {
            return error
        }
    }

    private static func quota(clients: Int = .max, logBytes: Int = .max) -> AppQuota {
        var quota = AppQuota()
        quota.clientsMax = clients
        quota.logBytesMax = logBytes
        return quota
    }

    @Test func `log bytes are taken up to the limit`() {
        let quota = Self.quota(logBytes: 1_000)
        func refusal(_ bytes: Int, beside used: Int) -> AppQuota.Rejection? {
            Self.refusal { () throws(AppQuota.Rejection) in
                try quota.checkLog(
                    adding: bytes, to: AppUsage(clients: .max, logBytes: used))
            }
        }
        #expect(refusal(1_000, beside: 0) == nil)
        #expect(refusal(400, beside: 600) == nil)
        #expect(refusal(401, beside: 600) == .logFull(used: 600, adding: 401, limit: 1_000))
        #expect(refusal(1, beside: 5_000) == .logFull(used: 5_000, adding: 1, limit: 1_000))
        // A post of events that are in the log already adds nothing.
        #expect(refusal(0, beside: 5_000) == nil)
        // A post that can never fit has an error of its own, because waiting does not help.
        #expect(refusal(1_001, beside: 0) == .exceedsLog(adding: 1_001, limit: 1_000))
        #expect(refusal(1_001, beside: 900) == .exceedsLog(adding: 1_001, limit: 1_000))
    }

    @Test func `sizes beyond all bounds are decided without overflow`() {
        let quota = Self.quota()
        let full = Self.refusal { () throws(AppQuota.Rejection) in
            try quota.checkLog(adding: .max, to: AppUsage(logBytes: .max))
        }
        #expect(full == .logFull(used: .max, adding: .max, limit: .max))
        let fitting = Self.refusal { () throws(AppQuota.Rejection) in
            try quota.checkLog(adding: .max, to: AppUsage(logBytes: -1))
        }
        #expect(fitting == nil)
    }

    @Test func `a table lists apps by what they use most of, and forgets those that use nothing`() {
        var table = UsageTable()
        table.add(AppUsage(clients: 1, logBytes: 30), to: "b")
        table.add(AppUsage(clients: 2, logBytes: 20), to: "a")
        table.add(AppUsage(clients: 2, logBytes: 10), to: "c")
        #expect(table.apps(byMost: \.clients).map(\.app) == ["a", "c", "b"])
        #expect(table.apps(byMost: \.logBytes).map(\.app) == ["b", "a", "c"])
        table.add(AppUsage(clients: -2, logBytes: -20), to: "a")
        #expect(table.apps(byMost: \.clients).map(\.app) == ["c", "b"])
        #expect(table["a"] == AppUsage())
    }

    /// Compares transactions of jobs that fail and succeed with lists of the registered and the
    /// written.
    @Test(arguments: 0..<20) func `staged usage is what the lists come to`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let apps = ["a", "b", "c"]
        let quota = Self.quota(logBytes: 500)
        var table = UsageTable()
        var model: [String: (clients: Int, rows: [Int])] = [:]
        var refusals = 0
        for _ in 0..<300 {
            var staged = StagedUsage(committed: table)
            var transaction = model
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                var job = transaction
                for _ in 0..<Int.random(in: 0...5, using: &random) {
                    let app = apps.randomElement(using: &random) ?? ""
                    let usage = staged.usage(of: app)
                    let known = job[app, default: (0, [])]
                    #expect(usage.clients == known.clients)
                    #expect(usage.logBytes == known.rows.reduce(0, +))
                    switch Int.random(in: 0..<4, using: &random) {
                    case 0:
                        // There may be more clients than a lowered limit.
                        let limit = Int.random(in: 2...5, using: &random)
                        let refusal = Self.refusal { () throws(AppQuota.Rejection) in
                            try Self.quota(clients: limit).checkNewClient(of: usage)
                        }
                        let expected: AppQuota.Rejection? =
                            known.clients < limit ? nil : .tooManyClients(limit: limit)
                        #expect(refusal == expected)
                        guard refusal == nil else { refusals += 1; continue }
                        staged.add(AppUsage(clients: 1), to: app)
                        job[app, default: (0, [])].clients += 1
                    case 1:
                        guard known.clients > 0 else { continue }
                        staged.add(AppUsage(clients: -1), to: app)
                        job[app, default: (0, [])].clients -= 1
                    case 2:
                        let bytes = Int.random(in: 0...120, using: &random)
                        let refusal = Self.refusal { () throws(AppQuota.Rejection) in
                            try quota.checkLog(adding: bytes, to: usage)
                        }
                        let fits = known.rows.reduce(bytes, +) <= 500
                        #expect((refusal == nil) == fits)
                        guard refusal == nil else { refusals += 1; continue }
                        staged.add(AppUsage(logBytes: bytes), to: app)
                        job[app, default: (0, [])].rows.append(bytes)
                    default:
                        guard !known.rows.isEmpty else { continue }
                        let bytes = job[app, default: (0, [])].rows.removeFirst()
                        staged.add(AppUsage(logBytes: -bytes), to: app)
                    }
                }
                let succeeds = Int.random(in: 0..<3, using: &random) > 0
                staged.endJob(succeeded: succeeds)
                if succeeds { transaction = job }
            }
            // A transaction that the disk refuses leaves everything as it was.
            guard Int.random(in: 0..<4, using: &random) > 0 else { continue }
            table.add(staged.changes)
            model = transaction
        }
        for app in apps {
            let known = model[app, default: (0, [])]
            #expect(
                table[app]
                    == AppUsage(clients: known.clients, logBytes: known.rows.reduce(0, +)))
        }
        #expect(refusals > 20)
    }
}
