import Logging
import Synchronization
import Testing

@testable import GatewayFleet

/// The status of a node's connections to the servers.
@Suite struct FleetStatusTests {
    /// A log handler that keeps the reasons of warnings, and other messages.
    private struct Handler: LogHandler {
        final class Lines: Sendable {
            let all = Mutex<[String]>([])
        }

        let lines: Lines
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let line = event.metadata?["reason"].map { "\($0)" } ?? "\(event.message)"
            lines.all.withLock { $0.append(line) }
        }
    }

    private let lines = Handler.Lines()

    private func lastLines() -> [String] {
        lines.all.withLock { all in
            defer { all = [] }
            return all
        }
    }

    @Test func `a start says nothing, a fault is told once, and so is its end`() async {
        let status = FleetStatus(Logger(label: "status") { _ in Handler(lines: lines) })
        #expect(status.objection == "the node is starting")
        async let ready: Void = status.ready()
        status.note(writer: nil)
        status.note(lease: nil)
        status.note(reader: nil)
        await ready
        #expect(status.objection == nil && lastLines() == [])

        status.note(writer: "no server answers")
        status.note(writer: "no server answers")
        #expect(status.objection == "no server answers")
        status.note(reader: "not fenced")
        status.note(writer: nil)
        #expect(status.objection == "not fenced")
        #expect(lastLines() == ["no server answers", "not fenced"])
        status.note(reader: nil)
        #expect(
            status.objection == nil && lastLines() == ["this node follows the fleet's log again"])
        await status.ready()
    }

    @Test func `a fault at the start is told`() {
        let status = FleetStatus(Logger(label: "status") { _ in Handler(lines: lines) })
        status.note(writer: "the login is wrong")
        #expect(lastLines() == ["the login is wrong"])
        status.note(writer: nil)
        // The others have still to begin.
        #expect(lastLines() == [] && status.objection == "the node is starting")
        status.note(reader: nil)
        status.note(lease: nil)
        #expect(lastLines() == ["this node follows the fleet's log again"])
    }
}
