import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// The story that the log tells an operator.
@Suite(.alone) struct LogTests {
    /// Returns the lines of a gateway's log that contain a text.
    private static func lines(_ gateway: GatewayProcess, _ text: String) -> [Substring] {
        gateway.standardErrorTail.split(separator: "\n").filter { $0.contains(text) }
    }

    @Test func `start, rejected tokens, failed handshakes and stop are in the log`() throws {
        let configuration = try GatewayConfiguration()
        let folder = configuration.folder
        let gateway = try GatewayProcess(data: folder, configuration: configuration.file)
        let starts = Self.lines(gateway, "the gateway starts")
        #expect(starts.count == 1)
        #expect(starts.first?.contains("configuration=\(configuration.file)") == true)
        #expect(starts.first?.contains("version=") == true)
        #expect(starts.first?.contains("directory=\(folder) ") == true)
        #expect(Self.lines(gateway, "the gateway is ready").count == 1)

        let token = try gateway.token(app: "com.a", scope: "catalog:write")
        let forged = token.dropLast(8) + "AAAAAAAA"
        for _ in 0..<10 {
            let answer = try gateway.http().request(
                "GET", "/v1/apps/com.a/catalog", token: String(forged))
            #expect(answer.status == 401)
        }
        let rejected = Self.lines(gateway, "a token was rejected")
        #expect(rejected.count == 3)
        #expect(rejected.allSatisfy { $0.contains("reason=token-bad-signature") })
        #expect(rejected.allSatisfy { $0.contains("from=127.0.0.1") })
        #expect(!gateway.standardErrorTail.contains(forged.suffix(40)))

        let put = try gateway.http().request(
            "PUT", "/v1/apps/com.a/catalog", token: token,
            body: #"{"app": "com.a", "widgets": []}"#)
        #expect(put.status == 201)
        #expect(Self.lines(gateway, "a catalog is in force").count == 1)

        let (_, output) = try GatewayProcess.run(
            [
                "-sS", "--max-time", "\(Int(Patience.seconds))",
                "http://127.0.0.1:\(gateway.url.split(separator: ":")[2])/",
            ], program: "/usr/bin/curl")
        #expect(!output.isEmpty)
        // The answer comes first.
        try blockUntil("a failed handshake is logged") {
            !Self.lines(gateway, "a TLS handshake failed").isEmpty
        }
        let handshakes = Self.lines(gateway, "a TLS handshake failed")
        #expect(handshakes.count == 1)
        #expect(handshakes.first?.contains("failure=plain-http") == true)

        #expect(gateway.terminate() == .status(0))
        let stops = Self.lines(gateway, "the gateway stops")
        #expect(stops.count == 1)
        #expect(stops.first?.contains("signal=SIGTERM") == true)
        #expect(Self.lines(gateway, "the gateway has stopped").count == 1)
        let leftOut = Self.lines(gateway, "similar messages of the last minute were left out")
        #expect(leftOut.count == 1)
        #expect(leftOut.first?.contains("count=7 event=\"a token was rejected\"") == true)
        for text in ["level=error", "level=debug", "a request was answered"] {
            #expect(Self.lines(gateway, text) == [])
        }
    }

    @Test func `a start behind a kill says so, and one behind a stop does not`() throws {
        let configuration = try GatewayConfiguration()
        let folder = configuration.folder
        var wasKilled: [Int] = []
        for ends in ["killed", "stopped", "stopped"] {
            let gateway = try GatewayProcess(data: folder, configuration: configuration.file)
            wasKilled.append(Self.lines(gateway, "was killed, not stopped").count)
            if ends == "killed" {
                gateway.kill()
            } else {
                #expect(gateway.terminate() == .status(0))
            }
        }
        #expect(wasKilled == [0, 1, 0])
    }

    @Test func `requests are logged at debug, and for one client if asked`() throws {
        let configuration = try GatewayConfiguration(
            in: nil, ["log: { levels: ['client:me=debug'] }"])
        let folder = configuration.folder
        let gateway = try GatewayProcess(data: folder, configuration: configuration.file)
        let token = try gateway.token(app: "com.a", scope: "clients:write")
        for client in ["me", "you"] {
            _ = try gateway.http().request("GET", "/v1/apps/com.a/clients/\(client)", token: token)
        }
        #expect(gateway.terminate() == .status(0))
        let answered = Self.lines(gateway, "a request was answered")
        #expect(answered.count == 1)
        #expect(answered.first?.contains("client=me") == true)
        #expect(answered.first?.contains("status=404") == true)
    }

    @Test(arguments: ["level: debug", "levels: ['timeline-gateway=trace']"])
    func `at debug each request is logged, and nothing of the gateway's parts`(
        option: String
    ) throws {
        let configuration = try GatewayConfiguration(in: nil, ["log: { \(option) }"])
        let folder = configuration.folder
        let gateway = try GatewayProcess(data: folder, configuration: configuration.file)
        let token = try gateway.token(app: "com.a", scope: "clients:write")
        _ = try gateway.http().request("GET", "/v1/apps/com.a/clients/me", token: token)
        #expect(gateway.terminate() == .status(0))
        #expect(Self.lines(gateway, "a request was answered").count == 1)
        // The library that starts and stops services describes them with all their values.
        #expect(Self.lines(gateway, "sl-service") == [])
        #expect(Self.lines(gateway, String(token.suffix(40))) == [])
    }

    @Test func `a port in use is named with its option`() throws {
        let configuration = try GatewayConfiguration()
        let folder = configuration.folder
        let port = try GatewayProcess.freePort()
        let gateway = try GatewayProcess(
            data: folder, configuration: configuration.file, admin: "127.0.0.1:\(port)")
        let listen = gateway.url.dropFirst("https://".count)
        let free = "127.0.0.1:0"
        for (option, arguments) in [
            ("admin: 127.0.0.1:\(port)", ["--listen", free, "--admin", "127.0.0.1:\(port)"]),
            ("listen: \(listen)", ["--listen", String(listen), "--admin", free]),
        ] {
            let (exit, output) = try GatewayProcess.run(
                ["serve", "--data", folder + "/second"] + arguments)
            #expect(exit == .status(1))
            #expect(output.contains("\(option) cannot be opened: Address already in use;"))
            #expect(!output.contains("invalid"))
        }
        #expect(gateway.terminate() == .status(0))
    }
}
