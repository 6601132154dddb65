import Foundation
import GatewayDelivery
import GatewayEngine
import GatewayOperations
import GatewayServer
import GatewayTestSupport
import WidgetModel

/// A gateway in the process of the tests. It runs what the program runs from the reading of its
/// configuration to its end, but without signals and an exit status of the process.
///
/// Its event loops, lanes and database have threads of their own, as in the program, and its
/// services run on further ones. Only a few short tasks share the threads of all tasks: a test that
/// blocks its own thread stops no gateway, unless that is a shared one.
///
/// It stops, without waiting, when this value is released.
final class LocalGateway: TestGateway {
    private struct State {
        var opened: (url: String, ports: GatewayPorts)?
        var exit: GatewayProcessExit?
        /// The reason why it did not start.
        var failure: (any Error)?
        var log: [String] = []
        var logTail: String { log.suffix(30).joined() }
    }

    let url: String
    let data: String
    let adminPort: Int
    /// The port for probes; 0 if there is none.
    let probePort: Int
    private let clock: HeldClock?
    private let ownsData: Bool
    private let state: TestHTTPMonitor<State>
    private let stops: AsyncStream<Void>.Continuation

    /// Starts a gateway and waits until it accepts connections.
    ///
    /// - Parameters:
    ///   - configuration: Its configuration, in whose folder its data are, too; `nil` for the
    ///     development mode with a temporary data directory.
    ///   - admin: Host and port of the admin port.
    ///   - environment: The only variables that it sees.
    ///   - clock: Its clock for everything but the timers of connections and the intervals of its
    ///     services. Default: the system's.
    /// - Throws: The gateway's own error, or ``TestFailure`` with the end of its log when it does
    ///   not start.
    init(
        _ configuration: GatewayTestSupport.GatewayConfiguration? = nil,
        admin: String = "127.0.0.1:0", environment: [String: String] = [:], clock: HeldClock? = nil
    ) throws {
        let data = try configuration?.folder ?? GatewayProcess.temporaryDirectory()
        let file = configuration?.file
        let flags = ["data": data, "listen": "127.0.0.1:0", "admin": admin]
        let read: ConfigurationReload.Read = { received throws(Faults) in
            try GatewayOperations.GatewayConfiguration.read(
                file: file, flags: flags, environment: environment, received: received)
        }
        let settings = try read(nil)
        let state = TestHTTPMonitor(State())
        let log = GatewayLog(settings.logFormat, settings.logLevels) { line in
            state.update { $0.log.append(line) }
        }
        let (stopping, stops) = AsyncStream.makeStream(of: Void.self)
        Task(executorPreference: OwnThreadExecutor.shared) {
            let exit: GatewayProcessExit
            do {
                let gateway = try await Gateway(
                    settings, log: log, clock: clock?.gateway ?? .system, read: read)
                try await gateway.run(until: stopping) { url, ports in
                    state.update { $0.opened = (url, ports) }
                }
                exit = .status(0)
            } catch {
                state.update {
                    $0.log.append("\(error)\n")
                    $0.failure = error
                }
                exit = .status(1)
            }
            // Nobody advances it any more.
            clock?.end()
            state.update { $0.exit = exit }
        }
        _ = state.wait(seconds: Patience.seconds) { state -> Bool? in
            state.opened != nil || state.exit != nil ? true : nil
        }
        guard let opened = state.update({ $0.opened }) else {
            stops.yield()
            if let failure = state.update({ $0.failure }) { throw failure }
            throw TestFailure("the gateway did not get ready:\n" + state.update { $0.logTail })
        }
        url = opened.url
        self.data = data
        (adminPort, probePort) = (opened.ports.admin, opened.ports.probes)
        self.clock = clock
        ownsData = configuration == nil
        self.state = state
        self.stops = stops
    }

    deinit {
        stops.yield()
        guard ownsData else { return }
        onThread { [state, data] in
            _ = state.wait(seconds: Patience.seconds) { $0.exit }
            try? FileManager.default.removeItem(atPath: data)
        }
    }

    var ca: String { data + "/certs/ca.pem" }

    var admin: String { "127.0.0.1:\(adminPort)" }

    var standardErrorTail: String { state.update { $0.logTail } }

    var wallSeconds: Int64 {
        clock.map { $0.wall / 1_000 } ?? Int64(Date().timeIntervalSince1970)
    }

    @discardableResult
    func terminate() -> GatewayProcessExit? {
        stops.yield()
        return state.wait(seconds: Patience.seconds) { $0.exit }
    }
}
