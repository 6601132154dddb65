import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// The simulated push service of `timelinectl`, run and queried with curl as a team would do
/// it.
@Suite(.alone) struct DevAPNsTests {
    private func timelinectl() throws -> String {
        try GatewayProcess.program(named: "timelinectl")
    }

    private func curl(
        _ service: JSONObject, token: String, device: String,
        topic: String = "com.mygame.push-type.widgets"
    ) throws -> String {
        let url = try #require(service["ready"]?.stringValue)
        let ca = try #require(service["ca"]?.stringValue)
        let (exit, output) = try GatewayProcess.run(
            [
                "-sS", "--http2", "--cacert", ca, "-H", "authorization: bearer \(token)", "-H",
                "apns-push-type: widgets", "-H", "apns-topic: \(topic)", "-d",
                #"{"aps":{"content-changed":true}}"#, "-w", " %{http_code} %{http_version}",
                "\(url)/3/device/\(device)",
            ], program: "/usr/bin/curl")
        #expect(exit == .status(0), "\(output)")
        return output
    }

    @Test func curlPushesToIt() throws {
        // A directory that does not exist, as where a newcomer tries it.
        let data = try GatewayProcess.temporaryDirectory() + "/new/apns"
        let service = try TestProgram(
            try timelinectl(),
            [
                "dev", "apns", "--data", data, "--listen", "127.0.0.1:0", "--json", "--app",
                "com.mygame", "--answer", "0a0b=410,200", "--count", "4",
            ])
        let ready = try #require(try service.json(line: 0))
        let (exit, output) = try GatewayProcess.run(
            ["dev", "apns-token", "--data", data], program: timelinectl())
        #expect(exit == .status(0))
        let token = output.trimmingCharacters(in: .whitespacesAndNewlines)
        let device = "0123456789abcdef0123456789abcdef"
        #expect(try curl(ready, token: token, device: device) == " 200 2")
        let gone = try curl(ready, token: token, device: "0a0b")
        #expect(gone.hasPrefix(#"{"reason":"Unregistered","timestamp":"#))
        #expect(gone.hasSuffix("} 410 2"))
        #expect(try curl(ready, token: token, device: "0a0b") == " 200 2")
        let other = try curl(
            ready, token: token, device: device, topic: "com.other.push-type.widgets")
        #expect(other == #"{"reason":"TopicDisallowed"} 400 2"#)
        #expect(service.waitForExit() == .status(0))
        let first = try #require(try service.json(line: 1))
        #expect(first["token"] == "01234567…" && first["status"] == 200)
        #expect(first["topic"] == "com.mygame.push-type.widgets")
        #expect(try service.json(line: 2)?["reason"] == "Unregistered")
        let summary = try #require(try service.json(line: 5)?["summary"]?.objectValue)
        #expect(summary["requests"] == 4 && summary["taken"] == 2)
        #expect(summary["providerTokens"] == 1)
        // No secret is printed.
        let all = service.output
        #expect(!all.contains(token) && !all.contains(device))
    }

    @Test func faultsAreAskedForByChance() throws {
        let data = try GatewayProcess.temporaryDirectory()
        let service = try TestProgram(
            try timelinectl(),
            [
                "dev", "apns", "--data", data, "--listen", "127.0.0.1:0", "--json", "--fault",
                "100%=TooManyRequests", "--count", "1",
            ])
        let ready = try #require(try service.json(line: 0))
        let (_, output) = try GatewayProcess.run(
            ["dev", "apns-token", "--data", data], program: timelinectl())
        let token = output.trimmingCharacters(in: .whitespacesAndNewlines)
        #expect(
            try curl(ready, token: token, device: "0a0b")
                == #"{"reason":"TooManyRequests"} 429 2"#)
        #expect(service.waitForExit() == .status(0))
    }

    @Test func whatIsWrongOnTheCommandLineIsSaid() throws {
        for arguments in [
            ["--fault", "5"], ["--fault", "101%"], ["--fault", "5%=never"], ["--answer", "0a"],
            ["--answer", "0a=999"], ["--listen", "nowhere"], ["--count", "0"],
            ["--certificate", "x.pem"], ["--fault", "60%", "--fault", "60%=410"],
        ] {
            let (exit, output) = try GatewayProcess.run(
                ["dev", "apns"] + arguments, program: timelinectl())
            #expect(exit == .status(2), "\(arguments): \(output)")
        }
    }
}
