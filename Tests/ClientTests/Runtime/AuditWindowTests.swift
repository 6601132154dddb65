import Testing
import WidgetModel

@testable import timelinectl

@Suite struct AuditWindowTests {
    private var window = AuditWindow(nodes: ["one", "two"])

    private static func at(_ seconds: Double) -> Duration { .milliseconds(Int(seconds * 1_000)) }

    /// Begins a change and has it accepted at once.
    private mutating func post(at seconds: Double, sequence: UInt64) -> Int {
        let number = window.begin(at: Self.at(seconds))
        window.accept(number, sequence: sequence, sent: Self.at(seconds))
        return number
    }

    private mutating func notify(
        _ number: Int, node: Int, sequence: UInt64, at seconds: Double
    ) {
        window.notify(number, node: node, sequence: sequence, at: Self.at(seconds))
    }

    private mutating func report(at seconds: Double) -> AuditReport {
        window.report(at: Self.at(seconds))
    }

    @Test mutating func `nothing is known before a delivery is decided`() {
        _ = post(at: 0, sequence: 1)
        let report = report(at: 1)
        #expect(report.reliability == AuditShare() && !report.isMet(0))
    }

    @Test mutating func `changes count for five minutes`() {
        let old = post(at: 0, sequence: 1)
        #expect(report(at: 300).changes == 0)
        notify(old, node: 0, sequence: 1, at: 300)
        window.accept(old, sequence: 1, sent: .zero)
        window.refuse(old, node: 0, reason: "late", at: Self.at(300))
        #expect(report(at: 300).reliability == AuditShare())
    }

    @Test mutating func `memory is bounded`() {
        for number in 0..<(AuditWindow.changesMax * 2) {
            #expect(window.begin(at: .zero) == number)
        }
        #expect(report(at: 0).changes == AuditWindow.changesMax)
        let number = window.begin(at: .zero)
        for _ in 0..<AuditWindow.earlyMax { notify(number, node: 0, sequence: 1, at: 0.1) }
        notify(number, node: 1, sequence: 2, at: 0.1)
        window.accept(number, sequence: 2, sent: .zero)
        #expect(report(at: 0.1).shares[0].total == 0, "the last one was dropped")
        window.disconnect(0, reason: String(repeating: "x", count: 10_000), at: .zero)
        #expect(report(at: 0).nodes[0].reason?.count == AuditWindow.reasonLengthMax)
    }

    @Test mutating func `reasons are told of nodes with a fault, and for five minutes`() {
        window.disconnect(0, reason: "it is down", at: .zero)
        #expect(report(at: 1).nodes.map(\.reason) == ["it is down", nil])
        #expect(report(at: 1).nodes.map(\.isConnected) == [false, false])
        window.connect(0)
        window.connect(1)
        #expect(report(at: 2).nodes.map(\.reason) == [nil, nil])
        window.reject(1, reason: "forged", at: Self.at(2))
        #expect(report(at: 2).nodes[1].reason == nil, "nothing was missed")
        _ = post(at: 3, sequence: 1)
        #expect(report(at: 5).nodes[1].reason == "forged")
        _ = post(at: 301, sequence: 2)
        #expect(report(at: 303).nodes.map(\.reason) == [nil, nil])
        let number = window.begin(at: Self.at(304))
        window.refuse(number, node: 0, reason: "503", at: Self.at(304))
        #expect(report(at: 304).nodes[0].reason == "503")
    }

    @Test mutating func `the figures in words, in JSON and as metrics`() throws {
        window.connect(0)
        window.connect(1)
        let numbers = (0..<3).map { post(at: 0, sequence: UInt64($0) + 1) }
        for number in numbers { notify(number, node: 0, sequence: 9, at: 0.5) }
        for number in numbers.dropLast() { notify(number, node: 1, sequence: 9, at: 5) }
        window.disconnect(1, reason: "the stream\nended", at: Self.at(5))
        let report = report(at: 61)
        #expect(report.text.hasSuffix("; two: not connected, 1 missing, the stream ended"))
        let json = try #require(report.json(objective: 0.5).objectValue)
        #expect(json["reliability"] == .number(5.0 / 6) && json["objective"] == .number(0.5))
        #expect(json["within1s"] == .number(0.5) && json["changes"] == 3)
        #expect(report.isMet(5.0 / 6) && !report.isMet(0.84))
        let page = report.metrics(app: "com.mygame", objective: 0.5, second: 7)
        for line in [
            "timeline_audit_delivered_ratio{app=\"com.mygame\",node=\"one\",within=\"1\"} 1.0",
            "timeline_audit_missing{app=\"com.mygame\",node=\"two\"} 1",
            "timeline_audit_connected{app=\"com.mygame\",node=\"two\"} 0",
        ] { #expect(page.contains(line + "\n"), "\(line)") }
        #expect(TextfilePage.escaped("a\"b\\c\n") == #"a\"b\\c\n"#)
    }

    @Test func `only a share without a miss is 100 %`() {
        #expect(AuditShare(inTime: 99_999, total: 100_000).text == "99.99 %")
        #expect(AuditShare(inTime: 3, total: 3).text == "100 %")
        #expect(AuditShare(inTime: 1, total: 1_000).text == "0.10 %")
        #expect(AuditShare(inTime: 21, total: 2_000).text == "1.05 %")
        #expect(AuditShare().text == "unknown" && AuditShare().json == .null)
    }

    // MARK: Model

    /// Every event ever seen; figures are formed anew from all of them.
    private struct Model {
        struct Change {
            let began: Duration
            var accepted: (sequence: UInt64, sent: Duration)?
            var refusals: Set<Int> = []
            var notifications: [(node: Int, sequence: UInt64, time: Duration)] = []
        }

        var changes: [Change] = []

        func share(node: Int, limit: Duration, now: Duration) -> AuditShare {
            var share = AuditShare()
            for change in changes where now - change.began < .seconds(300) {
                let start = change.accepted?.sent ?? change.began
                let times = change.notifications.filter {
                    $0.node == node && change.accepted != nil
                        && $0.sequence >= change.accepted?.sequence ?? .max
                }.map { max(.zero, $0.time - start) }
                if change.refusals.contains(node) {
                    share.total += 1
                } else if let first = times.first {
                    share.total += 1
                    if first <= limit { share.inTime += 1 }
                } else if now - start > limit {
                    share.total += 1
                }
            }
            return share
        }
    }

    @Test(arguments: 0..<40) func `any history has the figures of the model`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let nodes = 1 + Int(random.next() % 4)
        var window = AuditWindow(nodes: (0..<nodes).map { "node\($0)" })
        var model = Model()
        var now = Duration.zero
        func below(_ bound: Int) -> Int { Int(random.next() % UInt64(bound)) }
        for _ in 0..<2_000 {
            // Tenths of seconds, so that times meet the limits.
            now += .milliseconds(100 * (below(4) == 0 ? below(90) : below(3)))
            let number = max(0, model.changes.count - 1 - below(12))
            let node = below(nodes)
            // Changes older than five minutes are forgotten, and their events ignored.
            let isKept =
                model.changes.indices.contains(number)
                && now - model.changes[number].began < .seconds(300)
            switch below(6) {
            case 0:
                #expect(window.begin(at: now) == model.changes.count)
                model.changes.append(Model.Change(began: now))
            case 1 where isKept:
                let sequence = UInt64(below(20))
                let sent = max(model.changes[number].began, now - .milliseconds(100 * below(20)))
                window.accept(number, sequence: sequence, sent: sent)
                if model.changes[number].accepted == nil {
                    model.changes[number].accepted = (sequence, sent)
                }
            case 2 where isKept && below(4) == 0:
                window.refuse(number, node: node, reason: "r", at: now)
                model.changes[number].refusals.insert(node)
            case 3, 4:
                guard isKept else { break }
                let early = model.changes[number]
                guard
                    early.accepted != nil || early.notifications.count < AuditWindow.earlyMax
                else { break }
                let sequence = UInt64(below(20))
                window.notify(number, node: node, sequence: sequence, at: now)
                model.changes[number].notifications.append((node, sequence, now))
            default: break
            }
            guard below(5) == 0 else { continue }
            let report = window.report(at: now)
            var isPending = false
            for node in 0..<nodes {
                let shares = AuditWindow.limits.map {
                    model.share(node: node, limit: $0, now: now)
                }
                #expect(report.nodes[node].shares == shares)
                #expect(report.nodes[node].missing == shares[2].total - shares[2].inTime)
                isPending = isPending || shares[1].total < report.changes
            }
            #expect(window.isPending(at: now) == isPending)
            #expect(window.count <= AuditWindow.changesMax)
        }
    }
}
