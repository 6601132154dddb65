import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// `timelinectl status` and `top` against a real gateway's admin port.
@Suite(.alone) struct StatusTests {
    @Test func `status says on one screen how a gateway does, and ends with 0 when well`() throws {
        let nobody = try GatewayProcess.freeAddress()
        #expect(try GatewayProcess.timelinectl(["status", "--admin", nobody]).exit == .status(3))
        let gateway = try LocalGateway()
        let admin = gateway.admin
        let game = try GameFixture(gateway)
        let client = try game.client("phone", ["panda"])
        let stream = game.stream(client)
        _ = stream.next()
        try game.change(gateway.http(), ["panda"], run: "one")
        _ = stream.next()
        // A gateway that had no time for a moment is not well for a moment.
        var status = try GatewayProcess.timelinectl(["status", "--admin", admin])
        try blockUntil("well", details: { status.output }) {
            status = try GatewayProcess.timelinectl(["status", "--admin", admin])
            return status.exit == .status(0)
                && [
                    "gateway ready, version ", "decided ", "sent by stream ",
                    "1 open, 0 lagging", "com.mygame  1 ", "signing", "certificate expires 2",
                ].allSatisfy { status.output.contains($0) }
        }
        #expect(!status.output.contains("\u{1B}"), "colours without a terminal")
        var json: JSONObject?
        try blockUntil("well", details: { json.map { JSONValue.object($0).text } ?? "" }) {
            status = try GatewayProcess.timelinectl(["status", "--admin", admin, "--json"])
            json = (try? JSONValue(parsing: Array(status.output.utf8)))?.objectValue
            return json?["well"] == true && json?["ready"] == true
        }
        #expect(json?["apps"]?.arrayValue?.count == 1 && json?["series"] == nil)
        let wrong = try GatewayProcess.timelinectl(["status", "--admin", "nowhere"])
        #expect(wrong.exit == .status(2), "\(wrong.output)")
    }

    @Test func `status names what is wrong, and does not end with 0`() throws {
        let configuration = try GatewayConfiguration()
        try WatchedGateway.makeCertificates(in: configuration.folder, days: 10)
        let gateway = try LocalGateway(configuration)
        let status = try GatewayProcess.timelinectl(["status", "--admin", gateway.admin])
        #expect(status.exit == .status(6))
        #expect(status.output.contains("certificate expires in"), "\(status.output)")
        #expect(status.output.contains("Renew it at tls.certificate"))
    }

    @Test func `a rejected configuration is a problem until it is right`() throws {
        let configuration = try GatewayConfiguration()
        let gateway = try LocalGateway(configuration)
        func status(until word: String) throws -> String {
            var output = ""
            try blockUntil("`\(word)`", details: { output }) {
                output = try GatewayProcess.timelinectl(["status", "--admin", gateway.admin]).output
                return output.contains(word)
            }
            return output
        }
        try configuration.write(["nonsense: 1"])
        let rejected = try status(until: "configuration was rejected")
        #expect(rejected.contains("nonsense"), "\(rejected)")
        try blockUntil("the overview has it") {
            let overview = try gateway.adminHTTP().request("GET", "/api/overview")
            let trouble = overview["troubles"]?.arrayValue?.first?.objectValue
            return trouble?["level"] == "warning" && trouble?["page"] == "/system"
        }
        try configuration.write([])
        _ = try status(until: "gateway ready, version")
    }

    @Test func `top shows one moment without a terminal, and each as JSON`() throws {
        let gateway = try LocalGateway()
        _ = try GameFixture(gateway)
        let once = try GatewayProcess.timelinectl(["top", "--admin", gateway.admin])
        #expect(once.exit == .status(0))
        #expect(once.output.hasPrefix("gateway ready"), "\(once.output)")
        #expect(!once.output.contains("\u{1B}"))
        let lines = try TestProgram(
            GatewayProcess.program(named: "timelinectl"),
            ["top", "--admin", gateway.admin, "--json"])
        for line in 0..<2 { #expect(try lines.json(line: line)?["ready"] == true) }
        gateway.terminate()
    }

    @Test(arguments: ["q", "\u{3}"])
    func `top draws on a terminal until a key ends it, and leaves it as it was`(
        key: String
    ) throws {
        let gateway = try LocalGateway()
        _ = try GameFixture(gateway)
        let script = gateway.data + "/terminal.py"
        try Self.terminal.write(toFile: script, atomically: true, encoding: .utf8)
        let run = try GatewayProcess.run(
            [
                script, key, GatewayProcess.program(named: "timelinectl"), "top", "--admin",
                gateway.admin,
            ], program: "/usr/bin/python3")
        #expect(run.exit == .status(0), "\(run.output)")
        #expect(run.output.contains("\u{1B}[?1049h") && run.output.contains("\u{1B}[32mready"))
        #expect(run.output.contains("com.mygame"))
        #expect(run.output.hasSuffix("\u{1B}[?25h\u{1B}[?1049l"), "\(run.output)")
    }

    /// Runs a program on a terminal of its own, presses a key when it has drawn twice, prints
    /// its output, and exits with its status; 99 when the program does not restore the
    /// terminal.
    private static let terminal = """
        import os, pty, sys, termios
        pid, end = pty.fork()
        if pid == 0:
            os.environ["TERM"] = "xterm"
            os.environ.pop("NO_COLOR", None)
            os.execv(sys.argv[2], sys.argv[2:])
        before = termios.tcgetattr(end)[3]
        seen, pressed = b"", False
        while True:
            try:
                piece = os.read(end, 65536)
            except OSError:
                break
            if not piece:
                break
            seen += piece
            if not pressed and seen.count(b"\\x1b[H") >= 2:
                pressed = True
                os.write(end, sys.argv[1].encode())
            if seen.endswith(b"\\x1b[?1049l"):
                after = None
                for _ in range(6000):
                    after = termios.tcgetattr(end)[3]
                    if after == before: break
                    import time; time.sleep(0.02)
                if after != before: os._exit(99)
        sys.stdout.buffer.write(seen)
        sys.stdout.flush()
        status = os.waitpid(pid, 0)[1]
        sys.exit(os.waitstatus_to_exitcode(status))
        """
}
