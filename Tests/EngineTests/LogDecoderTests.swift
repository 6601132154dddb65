import Foundation
import GatewayCore
import GatewayOperations
import GatewayStorage
import Testing
import WidgetModel

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
