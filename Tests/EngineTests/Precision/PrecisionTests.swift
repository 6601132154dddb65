import Foundation
import Testing

/// Nobody is told for nothing, too late, or not at all: random operational events on an engine,
/// judged by a model that remembers every change by name.
///
/// `TIMELINE_ORACLE_SEED` plays one seed alone, `TIMELINE_ORACLE_SEEDS` sets their number, and
/// `TIMELINE_ORACLE_SHRINK` removes from the report the events that the fault does not need.
/// `TIMELINE_ORACLE_SCRIPT` plays the scripts whose names begin with it.
@Suite(.serialized, .timeLimit(.minutes(60))) struct PrecisionTests {
    private static let environment = ProcessInfo.processInfo.environment

    static let seeds: [UInt64] = {
        if let seed = environment["TIMELINE_ORACLE_SEED"].flatMap(UInt64.init) { return [seed] }
        let count = environment["TIMELINE_TEST_ALL"] == nil ? 20 : 200
        return Array(
            1...(environment["TIMELINE_ORACLE_SEEDS"].flatMap(UInt64.init) ?? UInt64(count)))
    }()

    @Test(arguments: seeds)
    func `nobody is told for nothing, late or not at all`(seed: UInt64) async throws {
        let found = try await OracleWorld.play(OracleEventSource.events(seed: seed))
        guard var found else { return }
        if Self.environment["TIMELINE_ORACLE_SHRINK"] != nil {
            found = try await OracleWorld.shrunk(found)
        }
        Issue.record("seed \(seed): \(found)")
    }

    static let scripts: [OracleScript] = {
        let name = environment["TIMELINE_ORACLE_SCRIPT"] ?? ""
        return OracleScript.all.filter { $0.name.hasPrefix(name) }
    }()

    @Test(arguments: scripts)
    func `what was once told for nothing is not`(script: OracleScript) async throws {
        let found = try await OracleWorld.play(
            script.events, devicesPerSecond: script.devicesPerSecond)
        if let found { Issue.record("\(script.name): \(found)") }
    }
}
