import Foundation
import GatewayCore
import GatewayOperations
import GatewayStorage
import Testing
import WidgetModel

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
