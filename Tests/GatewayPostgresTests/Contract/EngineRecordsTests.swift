import ClusterTestSupport
import Foundation
import GatewayCore
import GatewayStorage
import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayPostgres
@testable import GatewayRecords

/// The contract of the readers of the log, the same over every store.
@Suite(.enabled(if: PostgresServer.isInstalled)) struct EngineRecordsTests {
    private static let other = "com.other"
    /// The highest sequence that a store has room for.
    private static let highest = UInt64(Int64.max)

    private func records(
        _ kind: StoreKind, slice: Int64 = 1_000_000,
        _ body: (EngineFixture, any EngineRecords) async throws -> Void
    ) async throws {
        let engine = try await EngineFixture.start(kind, slice: slice)
        try await engine.put(["hero"])
        try await body(engine, engine.engine.records)
        try await engine.stop()
    }

    /// All rows after a sequence and up to another, by pages.
    private func log(
        _ records: any EngineRecords, after: UInt64 = 0, through last: UInt64, limit: Int
    ) async throws -> [LogRow] {
        var rows: [LogRow] = []
        while true {
            let page = try await records.log(
                after: rows.last?.sequence ?? after, through: last, limit: limit)
            #expect(page.count <= limit)
            guard !page.isEmpty else { return rows }
            rows += page
        }
    }

    /// All changes of an app, by pages.
    private func changes(
        _ records: any EngineRecords, app: String, before: UInt64 = highest, after: UInt64 = 0,
        limit: Int
    ) async throws -> [LogRow] {
        var rows: [LogRow] = []
        var before = before
        while true {
            let page = try await records.changes(
                app: app, before: before, after: after, limit: limit)
            #expect(page.rows.count <= limit)
            rows += page.rows
            guard let next = page.next else { return rows }
            guard next < before else {
                Issue.record("the cursor does not move")
                return rows
            }
            before = next
        }
    }

    /// The ids of all registrations that are listed, by pages.
    private func clients(
        _ records: any EngineRecords, app: String = EngineFixture.app,
        hero: String? = nil, prefix: String = "", after: String? = nil, limit: Int = 3
    ) async throws -> [String] {
        var clients: [String] = []
        var after = after
        while true {
            let page = try await records.registrations(
                app: app, attribute: hero.map { ("hero", $0) }, prefix: prefix, after: after,
                limit: limit)
            #expect(page.rows.count <= limit)
            #expect(page.rows.allSatisfy { $0.key.app == app })
            clients += page.rows.map(\.key.client)
            guard page.hasMore else { return clients }
            // Whoever continues does so by the last row.
            guard let last = page.rows.last else {
                Issue.record("an empty page before the end")
                return clients
            }
            after = last.key.client
        }
    }

    // MARK: The log

    @Test(arguments: StoreKind.allCases)
    func `a row of the log has what was accepted`(_ kind: StoreKind) async throws {
        try await records(kind) { engine, records in
            let start = Int64(Date().timeIntervalSince1970 * 1_000) - 1_000
            let event = CloudEvent(
                source: "/héros?a=%25", id: "id 7",
                change: Change(entity: "Hero", id: "panda", attributes: ["health": ["1"]]))
            _ = try await engine.changes.post([event], app: EngineFixture.app)
            let reload = try await engine.changes.reload(.kind("hero"), app: EngineFixture.app)
            _ = try await engine.changes.removeApp(EngineFixture.app)
            var rows: [LogRow] = []
            for sequence in UInt64(1)...4 {
                rows.append(try #require(try await records.logRow(sequence)))
            }
            #expect(rows.map(\.sequence) == [1, 2, 3, 4] && reload == 3)
            #expect(rows.map(\.type) == [.catalog, .change, .reload, .removal])
            #expect(rows.allSatisfy { $0.app == EngineFixture.app })
            #expect(rows.map(\.source) == [nil, "/héros?a=%25", nil, nil])
            #expect(rows.map(\.eventID) == [nil, "id 7", nil, nil])
            let end = Int64(Date().timeIntervalSince1970 * 1_000) + 1_000
            #expect(rows.allSatisfy { (start...end).contains($0.acceptedAt) })
            #expect(rows[0].payload.isEmpty)
            let change = try LogPayload.readChange(rows[1].payload, limits: .none).change
            #expect(change.json.serialized == event.change.json.serialized)
            #expect(try LogPayload.readReload(rows[2].payload) == .kind("hero"))
            #expect(rows[3].payload.isEmpty)
            for sequence in [0, 5, Self.highest] {
                #expect(try await records.logRow(sequence) == nil)
            }
            #expect(records.head == 4 && records.figures.head == 4)
            #expect(records.floor == 0)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the log is listed in order, in pages to its end`(_ kind: StoreKind) async throws {
        try await records(kind) { engine, records in
            try await engine.put(["hero"], app: Self.other)
            for post in 0..<8 {
                let app = post.isMultiple(of: 3) ? Self.other : EngineFixture.app
                let events = (0...post).map { EngineFixture.event("\(post) \($0)") }
                _ = try await engine.changes.post(events, app: app)
            }
            let head = records.head
            #expect(head == 38)
            let all = try await records.log(after: 0, through: head, limit: 1_000)
            #expect(all.map(\.sequence) == Array(1...head))
            #expect(all.prefix(3).map(\.app) == [EngineFixture.app, Self.other, Self.other])
            #expect(all.suffix(8).map(\.eventID) == (0...7).map { "7 \($0)" })
            for limit in [1, 3, 4, 37, 38, 39] {
                #expect(try await log(records, through: head, limit: limit) == all)
            }
            #expect(try await log(records, after: 5, through: 9, limit: 2) == Array(all[5..<9]))
            #expect(
                try await log(records, after: 36, through: Self.highest, limit: 2) == all.suffix(2))
            for (after, last) in [
                (9, 9), (9, 5), (head, Self.highest), (Self.highest, Self.highest), (0, 0),
            ]
                as [(UInt64, UInt64)]
            {
                #expect(try await records.log(after: after, through: last, limit: 5) == [])
            }
            #expect(try await records.log(after: 0, through: 9, limit: 0).count == 1)
            for row in all { #expect(try await records.logRow(row.sequence) == row) }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an app's changes are listed, the latest first`(_ kind: StoreKind) async throws {
        try await records(kind) { engine, records in
            try await engine.put(["hero"], app: Self.other)
            // At once, so that batches have several apps.
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<60 {
                    let app = number.isMultiple(of: 4) ? Self.other : EngineFixture.app
                    group.addTask {
                        let events = [0, 1].map { EngineFixture.event("\(number) \($0)") }
                        _ = try await engine.changes.post(events, app: app)
                    }
                }
                try await group.waitForAll()
            }
            _ = try await engine.changes.reload(.everything, app: EngineFixture.app)
            let all = try await records.log(after: 0, through: records.head, limit: 1_000)
            #expect(all.count == 123)
            for (app, count) in [(EngineFixture.app, 90), (Self.other, 30)] {
                let expected = all.filter { $0.app == app && $0.type == .change }
                #expect(expected.count == count)
                for limit in [1, 7, 30, 90, 1_000] {
                    let listed = try await changes(records, app: app, limit: limit)
                    #expect(listed == expected.reversed())
                }
                let range = try await changes(
                    records, app: app, before: 70, after: 40, limit: 4)
                #expect(
                    range == expected.filter { (41..<70).contains($0.sequence) }.reversed())
            }
            for before: UInt64 in [0, 1, 2, 3] {
                let page = try await records.changes(
                    app: EngineFixture.app, before: before, after: 0, limit: 9)
                #expect(page.rows == [] && page.next == nil)
            }
            let past = try await records.changes(
                app: EngineFixture.app, before: 4, after: 0, limit: 9)
            #expect(past.rows.allSatisfy { $0.sequence == 3 })
            for (app, after) in [
                ("nobody", 0), (EngineFixture.app, 123), (Self.other, Self.highest),
            ]
                as [(String, UInt64)]
            {
                let page = try await records.changes(
                    app: app, before: Self.highest, after: after, limit: 9)
                #expect(page.rows == [] && page.next == nil)
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a listing goes over the borders of slices`(_ kind: StoreKind) async throws {
        try await records(kind, slice: 16) { engine, records in
            for post in 0..<9 {
                let events = (0..<5).map { EngineFixture.event("\(post) \($0)") }
                _ = try await engine.changes.post(events, app: EngineFixture.app)
            }
            let all = try await log(records, through: Self.highest, limit: 7)
            #expect(all.map(\.sequence) == Array(1...46))
            let listed = try await changes(records, app: EngineFixture.app, limit: 7)
            #expect(listed == all.dropFirst().reversed())
            for row in all { #expect(try await records.logRow(row.sequence) == row) }
            for row in all {
                let before = try await records.lastSequence(acceptedBefore: row.acceptedAt)
                #expect(before < row.sequence)
                let after = try await records.lastSequence(acceptedBefore: row.acceptedAt + 1)
                #expect(after >= row.sequence)
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a long log is listed whole, and a cursor far in the past finds its place`(
        _ kind: StoreKind
    ) async throws {
        try await records(kind) { engine, records in
            for post in 0..<30 {
                let events = (0..<50).map { EngineFixture.event("\(post) \($0)") }
                _ = try await engine.changes.post(events, app: EngineFixture.app)
            }
            #expect(records.head == 1_501)
            let all = try await records.log(after: 0, through: Self.highest, limit: 10_000)
            #expect(all.map(\.sequence) == Array(1...1_501))
            let page = try await records.changes(
                app: EngineFixture.app, before: 12, after: 0, limit: 10)
            #expect(page.rows.map(\.sequence) == (2...11).reversed() && page.next == 2)
            let rest = try await records.changes(
                app: EngineFixture.app, before: 2, after: 0, limit: 10)
            #expect(rest.rows == [] && rest.next == nil)
            let first = try await records.log(after: 1, through: 1_501, limit: 3)
            #expect(first.map(\.sequence) == [2, 3, 4])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the last sequence before a time is found`(_ kind: StoreKind) async throws {
        try await records(kind) { engine, records in
            for number in 0..<25 {
                _ = try await engine.changes.post(
                    [EngineFixture.event("\(number)")], app: EngineFixture.app)
                try await Task.sleep(for: .milliseconds(3))
            }
            let rows = try await log(records, through: Self.highest, limit: 100)
            #expect(rows.count == 26)
            for row in rows {
                for moment in [row.acceptedAt, row.acceptedAt + 1] {
                    let expected = rows.last { $0.acceptedAt < moment }?.sequence ?? 0
                    #expect(
                        try await records.lastSequence(acceptedBefore: moment) == expected)
                }
            }
            #expect(try await records.lastSequence(acceptedBefore: 0) == 0)
            #expect(try await records.lastSequence(acceptedBefore: .min) == 0)
            #expect(try await records.lastSequence(acceptedBefore: .max) == 26)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the catalog in force for a row is found until the app is removed`(
        _ kind: StoreKind
    ) async throws {
        try await records(kind) { engine, records in
            func catalog(_ sequence: UInt64, app: String = EngineFixture.app) async throws
                -> CatalogRow?
            { try await records.catalog(app: app, at: sequence) }
            _ = try await engine.changes.post([EngineFixture.event("a")], app: EngineFixture.app)
            try await engine.put(["villain"])
            try await engine.put(["hero"], app: Self.other)
            _ = try await engine.changes.post([EngineFixture.event("b")], app: EngineFixture.app)
            #expect(records.head == 5)
            for (sequence, expected) in [
                (0, nil), (1, nil), (2, 1), (3, 1), (4, 3), (5, 3), (6, 3), (Self.highest, 3),
            ] as [(UInt64, UInt64?)] {
                #expect(try await catalog(sequence)?.sequence == expected, "at \(sequence)")
            }
            let row = try #require(try await catalog(2))
            #expect(row.app == EngineFixture.app)
            #expect(try LogPayload.readCatalog(row.payload).contentType == "application/yaml")
            #expect(try await catalog(5, app: Self.other)?.sequence == 4)
            #expect(try await catalog(5, app: "nobody") == nil)
            _ = try await engine.changes.removeApp(EngineFixture.app)
            for sequence: UInt64 in [2, 5, 6, 7, Self.highest] {
                #expect(try await catalog(sequence) == nil)
            }
            #expect(try await catalog(5, app: Self.other)?.sequence == 4)
            try await engine.put(["hero"])
            #expect(try await catalog(8)?.sequence == 7)
            #expect(try await catalog(5) == nil)
        }
    }

    // MARK: Registrations

    @Test(arguments: StoreKind.allCases)
    func `registrations are listed by the bytes of their ids, in pages to the end`(
        _ kind: StoreKind
    ) async throws {
        try await records(kind) { engine, records in
            #expect(try await clients(records) == [])
            let names = (0..<10).map { "c\($0)" } + ["Zoe", "~", "b.x", "b-x", "zoe"]
            for name in names.shuffled() { _ = try await engine.register(name) }
            try await engine.put(["hero"], app: Self.other)
            _ = try await engine.register("c1", app: Self.other)
            let expected = names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
            #expect(expected.first == "Zoe")
            for limit in [1, 2, 5, 14, 15, 16, 1_000] {
                #expect(try await clients(records, limit: limit) == expected)
            }
            #expect(try await clients(records, app: Self.other) == ["c1"])
            #expect(try await clients(records, app: "nobody") == [])
            #expect(try await clients(records, after: "c4") == expected.filter { $0 > "c4" })
            #expect(try await clients(records, after: "c44") == expected.filter { $0 > "c4" })
            #expect(try await clients(records, after: "~") == [])
            #expect(
                try await clients(records, prefix: "c", after: "c7") == ["c8", "c9"])
            #expect(try await clients(records, prefix: "c", after: "a", limit: 10).count == 10)
            #expect(try await clients(records, prefix: "c", after: "d") == [])
            let page = try await records.registrations(
                app: EngineFixture.app, attribute: nil, prefix: "", after: nil, limit: 0)
            #expect(page.rows.count == 1 && page.hasMore)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a listed registration has its content and its times`(_ kind: StoreKind) async throws {
        try await records(kind) { engine, records in
            let start = Int64(Date().timeIntervalSince1970 * 1_000) - 1_000
            _ = try await engine.register("phone", hero: "owl")
            let page = try await records.registrations(
                app: EngineFixture.app, attribute: nil, prefix: "", after: nil, limit: 5)
            let row = try #require(page.rows.first)
            #expect(page.rows.count == 1 && !page.hasMore)
            let key = EngineFixture.key("phone")
            #expect(try await engine.log.registration(key)?.payload == row.payload)
            let stored = try StoredRegistration(row.payload, limits: .none)
            #expect(stored.attributes.backend["hero"] == ["owl"])
            let end = Int64(Date().timeIntervalSince1970 * 1_000) + 1_000
            #expect((start...end).contains(row.updatedAt) && (start...end).contains(row.seenAt))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `no character of a prefix has a meaning`(_ kind: StoreKind) async throws {
        try await records(kind) { engine, records in
            let names = [
                "a%", "a%b", "a_b", "aXb", "a\\b", "a\\", "a'b", "a\"b", "é", "éa", "e\u{301}",
                "日本", "日曜", "a*b", "a", "😀", "😀b", "a\u{10FFFE}",
            ]
            for name in names { _ = try await engine.register(name) }
            #expect(Set(try await clients(records).map { Array($0.utf8) }).count == names.count)
            for prefix in [
                "a", "a%", "a_", "a\\", "a'", "a\"", "é", "e", "日", "日本", "😀", "%", "_", "*",
                "a\\b",
                "a\u{10FFFE}", "z",
            ] {
                let expected = names.filter { $0.utf8.starts(with: prefix.utf8) }
                    .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
                // As bytes: two forms of one letter are equal strings.
                let listed = try await clients(records, prefix: prefix, limit: 2)
                #expect(listed.map { Array($0.utf8) } == expected.map { Array($0.utf8) })
            }
            for text in ["\0", "a\0", "a\0b"] {
                #expect(try await clients(records, prefix: text) == [])
            }
            let behind = try await clients(records, prefix: "a", after: "a%\0z")
            #expect(behind == (try await clients(records, prefix: "a", after: "a%")))
            #expect(behind.first == "a%b")
            #expect(try await clients(records, app: "a\0b") == [])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `registrations are listed by an attribute's value`(_ kind: StoreKind) async throws {
        try await records(kind) { engine, records in
            let heroes = ["owl", "panda"]
            for number in 10..<22 {
                _ = try await engine.register("c\(number)", hero: heroes[number % 2])
            }
            _ = try await engine.register("é", hero: "100%_\\é")
            let owls = ["c10", "c12", "c14", "c16", "c18", "c20"]
            for limit in [1, 2, 6, 7] {
                #expect(try await clients(records, hero: "owl", limit: limit) == owls)
            }
            #expect(try await clients(records, hero: "100%_\\é") == ["é"])
            for value in ["", "ow", "owl2", "OWL", "%", "a\0"] {
                #expect(try await clients(records, hero: value) == [])
            }
            #expect(
                try await clients(records, hero: "owl", prefix: "c1", after: "c12")
                    == ["c14", "c16", "c18"])
            #expect(try await clients(records, app: Self.other, hero: "owl") == [])
            let page = try await records.registrations(
                app: EngineFixture.app, attribute: ("villain", "owl"), prefix: "", after: nil,
                limit: 5)
            #expect(page.rows == [] && !page.hasMore)
            // By the value that it has now.
            _ = try await engine.register("c12", hero: "fox")
            #expect(try await engine.log.remove(EngineFixture.key("c10")))
            #expect(try await clients(records, hero: "owl") == Array(owls.dropFirst(2)))
            #expect(try await clients(records, hero: "fox") == ["c12"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `of a removed app nothing is listed but its past changes`(
        _ kind: StoreKind
    ) async throws {
        try await records(kind) { engine, records in
            try await engine.put(["hero"], app: Self.other)
            for client in ["a", "b"] {
                _ = try await engine.register(client)
                _ = try await engine.register(client, app: Self.other)
            }
            _ = try await engine.changes.post([EngineFixture.event("x")], app: EngineFixture.app)
            let removal = try await engine.changes.removeApp(EngineFixture.app).sequence
            for hero in [nil, "panda"] {
                #expect(try await clients(records, hero: hero) == [])
                #expect(try await clients(records, app: Self.other, hero: hero) == ["a", "b"])
            }
            #expect(try await changes(records, app: EngineFixture.app, limit: 5).count == 1)
            #expect(
                try await changes(records, app: EngineFixture.app, after: removal, limit: 5) == [])
            try await engine.put(["hero"])
            #expect(try await clients(records) == [])
            _ = try await engine.register("b")
            _ = try await engine.changes.post([EngineFixture.event("y")], app: EngineFixture.app)
            #expect(try await clients(records) == ["b"])
            #expect(try await clients(records, hero: "panda") == ["b"])
            let fresh = try await changes(
                records, app: EngineFixture.app, after: removal, limit: 5)
            #expect(fresh.map(\.eventID) == ["y"])
        }
    }

    // MARK: Pushes

    @Test(arguments: StoreKind.allCases)
    func `without pushes there are no attempts and no tokens`(_ kind: StoreKind) async throws {
        try await records(kind) { _, records in
            let query = PushAttemptQuery(app: EngineFixture.app)
            let attempts = try await records.pushAttempts(query, limit: 5)
            let tokens = try await records.providerTokens()
            #expect(attempts.isEmpty && tokens.isEmpty)
        }
    }
}
