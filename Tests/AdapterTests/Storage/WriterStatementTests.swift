import Foundation
import GRDB
import Testing

@testable import GatewayStorage

/// The writer's own way of binding values must have the same results as GRDB's.
@Suite struct WriterStatementTests {
    private static let texts = [
        "", "a", "fifteen letters", "more than fifteen letters", "größer", "日本語 👩‍👩‍👧", "a\u{301}",
    ]

    @Test(arguments: texts, [0, 1, 5_000])
    func whatIsBoundIsWhatIsRead(text: String, count: Int) async throws {
        let payload = Data((0..<count).map { UInt8(truncatingIfNeeded: $0) })
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        _ = try await store.write(cost: 0) { transaction in
            _ = try transaction.event(app: text, source: text, id: text)
            try transaction.append(
                app: text, type: .change, source: text, eventID: text, acceptedAt: .min,
                payload: payload)
            try transaction.append(
                app: text, type: .reload, source: nil, eventID: nil, acceptedAt: .max,
                payload: payload)
            let known = try transaction.event(app: text, source: text, id: text)
            #expect(known?.sequence == 1)
            #expect(known?.payload == payload)
            #expect(try transaction.event(app: text, source: text, id: text + "x") == nil)
        }
        let rows = try store.rows()
        #expect(rows.map(\.app) == [text, text])
        #expect(rows.map(\.source) == [text, nil])
        #expect(rows.map(\.eventID) == [text, nil])
        #expect(rows.map(\.acceptedAt) == [.min, .max])
        #expect(rows.map(\.payload) == [payload, payload])
        for row in rows { #expect(Array(row.app.utf8) == Array(text.utf8)) }
    }

    /// An empty text is stored as a text, and empty bytes as NULL.
    @Test func emptyIsNotNull() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        try await store.appendChange(app: "", eventID: "", payload: Data())
        let types = try await store.database.read { db in
            try String.fetchOne(
                db,
                sql: """
                    SELECT typeof(app) || ' ' || typeof(event_id) || ' ' || typeof(payload) FROM log
                    """)
        }
        #expect(types == "text text null")
    }

    /// A statement that failed can be used again, within its transaction and after it.
    @Test func aStatementThatFailedRunsAgain() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        try await store.database.writeWithoutTransaction { db in
            try db.execute(
                sql: """
                    CREATE TRIGGER refuse BEFORE INSERT ON log WHEN NEW.app = 'refused'
                    BEGIN SELECT RAISE(ABORT, 'refused'); END
                    """)
        }
        _ = try await store.write(cost: 0) { transaction in
            for app in ["a", "refused", "b"] {
                do {
                    try transaction.append(
                        app: app, type: .change, source: nil, eventID: nil, acceptedAt: 1,
                        payload: Data(app.utf8))
                } catch StoreError.rejected {
                    #expect(app == "refused")
                }
            }
        }
        try await store.appendChange(app: "c")
        let rows = try store.rows()
        #expect(rows.map(\.app) == ["a", "b", "c"])
        #expect(rows.map(\.sequence) == [1, 2, 3])
    }
}
