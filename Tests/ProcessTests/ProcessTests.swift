import APNsSimulator
import GatewayTestSupport
import Testing

/// Tests of whole gateways: one at a time, because each needs the machine to itself, and on threads
/// of their own, because they block where tasks must not.
///
/// A test of what only a process has starts a `GatewayProcess`: signals, its end, its files while it
/// is down, its memory, its command line. All others start a `LocalGateway`.
@Suite(.serialized, .ownThread) enum ProcessTests {}

/// Runs a test on a thread of its own instead of one of the few that all tests share.
struct OwnThreadTrait: SuiteTrait, TestTrait, TestScoping {
    let isRecursive = true

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await withTaskExecutorPreference(OwnThreadExecutor.shared) { try await function() }
    }
}

extension Trait where Self == OwnThreadTrait {
    /// Allows the test to block its thread.
    static var ownThread: Self { Self() }
}

extension GatewayConfiguration {
    /// Starts a gateway with this configuration: in this process, or as a process of its own.
    ///
    /// - Parameter clock: The clock of one in this process.
    func start(asProcess: Bool, clock: HeldClock? = nil) throws -> any TestGateway {
        guard asProcess else { return try LocalGateway(self, clock: clock) }
        return try GatewayProcess(
            data: folder, configuration: file, admin: GatewayProcess.freeAddress())
    }
}

extension TestGateway {
    /// This gateway, in a test whose point is its process.
    var process: GatewayProcess {
        get throws { try #require(self as? GatewayProcess) }
    }

    /// Makes it read its configuration now.
    func reloadConfiguration() throws -> TestHTTPAnswer {
        try http().request(
            "POST", "/v1/configuration/reload", token: token(app: "*", scope: "operator"))
    }
}

extension APNsServer {
    /// Waits until a condition holds for the record of what a gateway pushed.
    ///
    /// - Parameter tick: Called before each look.
    func until(
        _ what: String, of gateway: any TestGateway, tick: () -> Void = {},
        _ holds: (PushRecord) -> Bool
    ) async throws {
        try await eventually(
            what,
            details: { "\(record.answers), \(record.violations); \(gateway.standardErrorTail)" }
        ) {
            tick()
            return holds(record)
        }
    }
}
