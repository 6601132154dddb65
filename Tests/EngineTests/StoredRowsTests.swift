import Foundation
import GatewayCore
import Testing
import WidgetModel

@testable import GatewayOperations
@testable import GatewayStorage

/// Rows of the log are read back as the entries that they were.
@Suite struct LogDecoderTests {
    private static let catalog = """
        app: com.game
        entities: { Score: {} }
        widgets: [{ kind: score, configuration: static, dependsOn: [{ entity: Score }] }]
        """

    private static func row(
        _ sequence: UInt64, _ type: LogEntryType, _ payload: Data = Data()
    ) -> LogRow {
        LogRow(
            sequence: sequence, app: "com.game", type: type, source: nil, eventID: nil,
            acceptedAt: 1_800_000_000_000, payload: payload)
    }

    @Test func `urgency, times and catalogs are those of the time`() throws {
        let hashes = try StoreHashes(secret: Data(repeating: 7, count: SQLiteStore.secretBytes))
        var decoder = LogDecoder(
            catalogs: CatalogState(decider: Decider(hash: hashes.keys, limits: Limits())),
            hashes: hashes)
        func change(_ time: String?) throws -> Data {
            let change = try Change(
                ["entity": "Score", "urgency": "high"], at: "data", limits: Limits())
            return LogPayload.change(change, time: time)
        }
        // Before the catalog nothing depends on the entity.
        let before = try decoder.entry(of: Self.row(1, .change, change(nil)), catalog: nil)
        guard case .change(let none, _) = before.body else { throw Unexpected() }
        #expect(none.isUnmatched)
        let catalog = CatalogRow(
            app: "com.game", sequence: 2,
            payload: LogPayload.catalog(
                contentType: "application/yaml", body: Array(Self.catalog.utf8)))
        _ = try decoder.entry(of: Self.row(2, .catalog), catalog: catalog)
        for time in [nil, "2027-01-15T07:59:59.000Z"] {
            let entry = try decoder.entry(of: Self.row(3, .change, change(time)), catalog: nil)
            #expect(entry.urgency == .high && entry.acceptedAt == 1_800_000_000_000)
            guard case .change(let decision, let cause) = entry.body else { throw Unexpected() }
            #expect(!decision.isUnmatched)
            #expect(cause?.time == time ?? "2027-01-15T08:00:00.000Z")
        }
        _ = try decoder.entry(of: Self.row(4, .removal), catalog: nil)
        #expect(decoder.catalogs.documents.isEmpty && decoder.catalogs.removals["com.game"] == 4)
    }

    @Test func `a start is read back with its channels and urgency`() throws {
        let hashes = try StoreHashes(secret: Data(repeating: 7, count: SQLiteStore.secretBytes))
        var decoder = LogDecoder(
            catalogs: CatalogState(decider: Decider(hash: hashes.keys, limits: Limits())),
            hashes: hashes)
        var start = try ActivityStart(
            ["id": "1", "type": "A", "channel": "c", "urgency": "high"], limits: Limits())
        start.channels = ["production": "AAAA"]
        let row = Self.row(1, .start, LogPayload.start(start))
        let entry = try decoder.entry(of: row, catalog: nil)
        guard case .start(let found) = entry.body else { throw Unexpected() }
        #expect(found.json == start.json && found.channels == start.channels)
        #expect(entry.urgency == .high && entry.acceptedAt == row.acceptedAt)
        let damaged = Self.row(2, .start, Data("{}".utf8))
        #expect(throws: UnreadableRow.self) { try decoder.entry(of: damaged, catalog: nil) }
    }

    private struct Unexpected: Error {}
}

@Suite struct StoredRegistrationTests {
    @Test func `attributes are read back by who answers for them`() throws {
        var stored = StoredRegistration(registration: ClientRegistration(platform: "iOS"))
        stored.attributes = ClientAttributes(
            own: ["theme": ["dark"]], token: ["account": ["42"]], backend: ["team": ["7", "8"]],
            unattributed: ["house": ["9"]])
        let read = try StoredRegistration(stored.payload, limits: .none)
        #expect(read.attributes == stored.attributes)
        #expect(read.payload == stored.payload)
    }

    @Test func `a token that goes leaves its activity, and takes the start of its type along`()
        throws
    {
        func token(_ text: String) -> DeliveryAddress {
            .apns(.init(pushType: "liveactivity", token: text))
        }
        let (one, two) = (token("aa"), token("bb"))
        var stored = StoredRegistration(
            registration: ClientRegistration(
                platform: "iOS",
                activities: ["aa", "bb"].map { .init(type: "A", id: $0, delivery: token($0)) },
                activityStarts: [.init(type: "A", delivery: token("cc"))]))
        stored.remove(one)
        stored.remove(token("cc"))
        #expect(stored.registration.activities.map(\.id) == ["aa", "bb"])
        #expect(stored.registration.activities.map(\.delivery) == [nil, two])
        #expect(stored.registration.activityStarts.isEmpty)
    }

    @Test func `a store that did not tell tokens from backends keeps what it has`() throws {
        let old = """
            {"registration":{"platform":"iOS","attributes":{"theme":"dark"}},\
            "own":{"theme":"dark"},"vouched":{"account":"42"},"confirmed":{},"since":3}
            """
        let read = try StoredRegistration(Data(old.utf8), limits: .none)
        #expect(
            read.attributes
                == ClientAttributes(own: ["theme": ["dark"]], unattributed: ["account": ["42"]]))
        #expect(read.since == 3)
    }
}

/// A start that cannot read a row says which one.
@Suite struct UnreadableRowTests {
    /// Returns the error message of a start on a store with one more row.
    private static func words(
        _ write: @escaping @Sendable (inout StoreTransaction) throws -> Void
    ) async throws -> String {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        _ = try await store.write(for: .gateway, cost: 0, write)
        let error = #expect(throws: UnreadableRow.self) {
            _ = try LogReplay(of: store, limits: Limits(), coreLimits: CoreLimits())
        }
        return "\(try #require(error))"
    }

    @Test func `a registration`() async throws {
        let words = try await Self.words { transaction in
            _ = try transaction.putRegistration(
                app: "com.game", client: "anna", payload: Data(#"{"registration":{"#.utf8),
                attributes: [:], updatedAt: 0)
        }
        #expect(words.contains("the registration of the client anna of the app com.game"))
        #expect(words.contains("timelinectl restore"))
    }

    @Test func `an entry of the log`() async throws {
        let words = try await Self.words { transaction in
            _ = try transaction.append(
                app: "com.game", type: .change, source: "s", eventID: "1", acceptedAt: 0,
                payload: Data("{}".utf8))
        }
        #expect(words.contains("the change at 1"))
        let reload = try await Self.words { transaction in
            _ = try transaction.append(
                app: "com.game", type: .reload, source: nil, eventID: nil, acceptedAt: 0,
                payload: Data("[]".utf8))
        }
        #expect(reload.contains("the reload at 1"))
    }
}
