import ClusterTestSupport
import Foundation
import GatewayCore
import GatewayRecords
import GatewaySettings
import GatewaySigning
import GatewayStorage
import WidgetModel

@testable import GatewayEngine
@testable import GatewayFleet
@testable import GatewayPostgres

/// The data directory of a gateway that was started twice and stopped.
final class MovedDirectory: Sendable {
    static let timing = KeyRing.Timing(signatureLifetime: 900)

    let path = FileManager.default.temporaryDirectory.path + "/\(UUID().uuidString)"
    /// The sequence at which the second start opened its epoch.
    let secondStart: UInt64
    /// Cursors in the first epoch, at its end and behind it.
    let oldCursors: (held: String, beyond: String)
    /// Cursors in the second epoch, at the end of the log and behind it.
    let newCursors: (held: String, beyond: String)
    let head: UInt64
    let document: CatalogDocument?
    let rules: RuleSet?
    let removal: UInt64
    let registrations: [String: Data]

    /// Writes 10 records: a catalog, an event and a removal of the app, then the app anew with the
    /// same event and others.
    ///
    /// - Parameter keepsRows: The number of records that retention leaves.
    init(keepsRows: UInt64 = .max) async throws {
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: false)
        _ = try KeyRingStore(directory: path + "/keys").open(
            timing: Self.timing, now: Int64(Date().timeIntervalSince1970))
        _ = try KeyRingStore(directory: path + "/issuer").open(
            timing: .tokens, now: Int64(Date().timeIntervalSince1970))
        let first = try EngineFixture.file(in: path)
        try await first.put(["old"])
        _ = try await first.changes.post(
            [EngineFixture.event("a", health: "9")], app: EngineFixture.app)
        _ = try await first.register("gone")
        _ = try await first.changes.removeApp(EngineFixture.app)
        try await first.put(["hero", "other"])
        _ = try await first.changes.post(
            [EngineFixture.event("a"), EngineFixture.event("b")], app: EngineFixture.app)
        _ = try await first.register("phone")
        secondStart = first.log.head
        oldCursors = (first.cursor(secondStart), first.cursor(secondStart + 1))
        try await first.stop()

        let second = try EngineFixture.file(in: path)
        _ = try await second.changes.post([EngineFixture.event("c")], app: EngineFixture.app)
        try await second.put(["hero"])
        _ = try await second.log.append(.everything, to: EngineFixture.app, trace: nil)
        _ = try await second.changes.post([EngineFixture.event("d")], app: EngineFixture.app)
        _ = try await second.register("tablet", hero: "ünï")
        head = second.log.head
        newCursors = (second.cursor(head), second.cursor(head + 1))
        document = second.catalogs.document(of: EngineFixture.app)
        rules = second.catalogs.ruleSet(of: EngineFixture.app)
        var registrations: [String: Data] = [:]
        for client in ["phone", "tablet"] {
            registrations[client] =
                try await second.log.registration(EngineFixture.key(client))?.payload
        }
        self.registrations = registrations
        if keepsRows < .max {
            _ = try await second.engine.embedded?.store.write(cost: 0) {
                try $0.prune(acceptedBefore: 0, keepRows: keepsRows, limit: 100)
            }
        }
        removal = keepsRows < 8 ? 0 : second.catalogs.removal(of: EngineFixture.app)
        try await second.stop()
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Moves the directory to a cluster.
    @discardableResult
    func move(
        to cluster: ClusterFixture, key: [UInt8] = EngineFixture.fleetKey,
        rowsPerPortion: Int = 1_000, mark: () throws -> Void = {}
    ) throws -> DirectoryMove.Outcome {
        let key = FleetKey(SecretBytes(copying: key))
        var move = try DirectoryMove(path, timing: Self.timing, key: key)
        move.rowsPerPortion = rowsPerPortion
        return try move.run(
            on: try cluster.administration(), now: Int64(Date().timeIntervalSince1970), mark: mark)
    }
}

extension EngineFixture {
    /// Returns the text of a cursor of the present epoch.
    func cursor(_ sequence: UInt64) -> String { engine.cursors.text(sequence) }
}
