import APNsSimulator
import GatewayTestSupport
import Synchronization
import Testing

/// Runs a test of whole gateways beside no other such test, because it needs the machine to itself,
/// and on a thread of its own, because it blocks where tasks must not.
///
/// A test of what only a process has starts a `GatewayProcess`: signals, its end, its files while
/// it is down, its memory, its command line. All others start a `LocalGateway`.
struct AloneTrait: SuiteTrait, TestTrait, TestScoping {
    /// Hands the turn to those who wait for it in their order.
    private final class Turns: Sendable {
        private let state = Mutex<(isTaken: Bool, waiting: [CheckedContinuation<Void, Never>])>(
            (false, []))

        func begin() async {
            await withCheckedContinuation { continuation in
                let isFree = state.withLock { state in
                    if state.isTaken { state.waiting.append(continuation) }
                    defer { state.isTaken = true }
                    return !state.isTaken
                }
                if isFree { continuation.resume() }
            }
        }

        func end() {
            let next: CheckedContinuation<Void, Never>? = state.withLock { state in
                state.isTaken = !state.waiting.isEmpty
                return state.isTaken ? state.waiting.removeFirst() : nil
            }
            next?.resume()
        }
    }

    private static let turns = Turns()

    let isRecursive = true

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        // A suite that had the turn would keep it from its tests.
        guard testCase != nil else { return try await function() }
        await Self.turns.begin()
        defer { Self.turns.end() }
        try await withTaskExecutorPreference(OwnThreadExecutor.shared) { try await function() }
    }
}

extension Trait where Self == AloneTrait {
    /// Runs the test alone, and allows it to block its thread.
    static var alone: Self { Self() }
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
