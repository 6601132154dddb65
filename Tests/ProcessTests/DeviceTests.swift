import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

extension ProcessTests {
    /// The simulator of `timelinectl`, run as by hand.
    @Suite struct DeviceTests {
        private func run(
            _ gateway: GatewayProcess, _ arguments: [String]
        ) throws -> (exit: GatewayProcessExit, output: String) {
            let token = try gateway.token(
                app: CharacterGame.app,
                scope: "catalog:write changes:write clients:write tokens:issue", sub: "backend")
            return try GatewayProcess.run(
                [
                    "device", "--url", gateway.url, "--ca", gateway.ca, "--token", token,
                    "--app", CharacterGame.app, "--json",
                ] + arguments, program: GatewayProcess.program(named: "timelinectl"), seconds: 240)
        }

        private func putCatalog(
            _ gateway: GatewayProcess, _ catalog: String = CharacterGame.catalogYAML
        ) throws {
            let token = try gateway.token(
                app: CharacterGame.app, scope: "catalog:write", sub: "backend")
            let answer = try gateway.http().request(
                "PUT", "/v1/apps/\(CharacterGame.app)/catalog", token: token,
                headers: [("Content-Type", "application/yaml")], body: catalog)
            guard answer.status == 201 else { throw TestFailure(answer.text) }
        }

        /// Puts a catalog of kinds that a person configures with an item, each with its collapse
        /// window and rules.
        private func putItemCatalog(
            _ gateway: GatewayProcess, _ kinds: [(name: String, collapse: String, rules: String)]
        ) throws {
            let widgets = kinds.map { name, collapse, rules in
                """
                  - kind: \(name)
                    configuration: appIntent
                    intent: Choose
                    families: [systemSmall]
                    collapse: \(collapse)
                    dependsOn: [\(rules)]

                """
            }
            try putCatalog(
                gateway,
                """
                app: \(CharacterGame.app)
                entities: { Item: {} }
                intents: { Choose: { parameters: [{ name: item, type: String }] } }
                widgets:

                """ + widgets.joined())
        }

        /// Returns the summary in the last line of its output.
        private func summary(_ output: String) throws -> JSONObject {
            let line = output.split(separator: "\n").last ?? ""
            let value = try JSONValue(parsing: Array(line.utf8))
            return try #require(value.objectValue?["summary"]?.objectValue, "\(output)")
        }

        @Test func everyDeviceRebuildsExactlyWhatItDependsOn() throws {
            let port = try GatewayProcess.freePort()
            let gateway = try GatewayProcess(admin: "127.0.0.1:\(port)")
            try putCatalog(gateway)
            let (exit, output) = try run(
                gateway,
                [
                    "--devices", "20", "--items", "10", "--post", "20", "--duration", "5",
                    "--build-ms", "20", "--admin", "127.0.0.1:\(port)",
                ])
            #expect(exit == .status(0), "\(output)")
            let summary = try summary(output)
            #expect(summary["connected"] == 20)
            #expect(summary["lost"] == 0 && summary["stray"] == 0 && summary["unverified"] == 0)
            #expect(summary["posted"]?.integerValue ?? 0 > 0)
            // Every timeline was built at first; further builds were caused by changes.
            let timelines = try #require(summary["timelines"]?.integerValue)
            #expect(summary["rebuilt"]?.integerValue ?? 0 > timelines)
            let measured = try #require(summary["gateway"]?.objectValue)
            #expect(measured["rebuilds"]?.integerValue ?? 0 > 0)
            #expect(measured["p50Agrees"] == true && measured["p99Agrees"] == true, "\(output)")
            // It leaves no client behind.
            let operatorToken = try gateway.token(
                app: CharacterGame.app, scope: "clients:write", sub: "operator")
            let left = try gateway.http().request(
                "GET", "/v1/apps/\(CharacterGame.app)/clients", token: operatorToken)
            #expect(left["clients"]?.arrayValue?.isEmpty == true, "\(left.text)")
        }

        /// While a change waits in any window, cursors stay below it, even those of devices that
        /// rebuild for another change; the gateway nevertheless counts each rebuild. Where builds
        /// take no time, one report covers rebuilds for several changes.
        @Test(arguments: [0, 60])
        func whereCollapseWindowsOverlapTheGatewayCountsWhatTheDevicesCount(
            buildMilliseconds: Int
        ) throws {
            let rule = "{ entity: Item, match: { id: $item } }"
            let port = try GatewayProcess.freePort()
            let gateway = try GatewayProcess(admin: "127.0.0.1:\(port)")
            try putItemCatalog(
                gateway,
                [("fast", "0ms", rule), ("medium", "300ms", rule), ("slow", "1500ms", rule)])
            let (exit, output) = try run(
                gateway,
                [
                    "--devices", "30", "--items", "12", "--post", "25", "--duration", "6",
                    "--build-ms", "\(buildMilliseconds)", "--admin", "127.0.0.1:\(port)",
                ])
            #expect(exit == .status(0), "\(output)")
            let summary = try summary(output)
            let rebuilds = try #require(summary["rebuiltForChanges"]?.integerValue)
            #expect(rebuilds > 100, "\(output)")
            let measured = try #require(summary["gateway"]?.objectValue)
            #expect(measured["rebuilds"]?.integerValue == rebuilds, "\(output)")
            #expect(measured["p50Agrees"] == true && measured["p99Agrees"] == true, "\(output)")
        }

        /// A change that matches two rules of a kind is notified for each, at once or at the end of
        /// its window, so a device that builds twice was asked to.
        @Test func whatTwoRulesAskForIsNoStray() throws {
            let gateway = try GatewayProcess()
            let rules =
                "{ entity: Item, match: { id: $item } }, "
                + "{ entity: Item, match: { group: $client.group } }"
            try putItemCatalog(gateway, [("atonce", "0ms", rules), ("later", "300ms", rules)])
            let (exit, output) = try run(
                gateway,
                ["--devices", "20", "--items", "3", "--post", "15", "--duration", "4"])
            #expect(exit == .status(0), "\(output)")
            let summary = try summary(output)
            #expect(summary["stray"] == 0 && summary["lost"] == 0, "\(output)")
            let rebuilt = try #require(summary["rebuilt"]?.integerValue)
            let first = try #require(summary["timelines"]?.integerValue)
            let forChanges = try #require(summary["rebuiltForChanges"]?.integerValue)
            #expect(rebuilt - first > forChanges, "no change was rebuilt for twice: \(output)")
        }

        /// Two fleets disturb each other: neither knows of the other's changes.
        @Test func aReloadThatNothingAskedForIsAFailure() throws {
            let gateway = try GatewayProcess()
            try putCatalog(gateway)
            let poster = try gateway.token(
                app: CharacterGame.app, scope: "changes:write", sub: "backend")
            let isOver = NSLock()
            isOver.lock()
            let thread = Thread {
                var number = 0
                while !isOver.try() {
                    number += 1
                    let body =
                        #"{"specversion":"1.0","type":"c","source":"other","id":"\#(number)","#
                        + #""data":{"entity":"CharacterDetail","id":"item-1"}}"#
                    _ = try? gateway.http().request(
                        "POST", "/v1/apps/\(CharacterGame.app)/changes", token: poster,
                        headers: [("Content-Type", "application/cloudevents+json")], body: body)
                    Thread.sleep(forTimeInterval: 0.1)
                }
                isOver.unlock()
            }
            thread.start()
            defer { isOver.unlock() }
            let (exit, output) = try run(
                gateway,
                ["--devices", "20", "--items", "1", "--post", "0.5", "--duration", "4"])
            #expect(exit == .status(5), "\(output)")
        }

        @Test func `SIGTERM ends a run as Ctrl-C does, with a summary and without clients left`()
            throws
        {
            let gateway = try GatewayProcess()
            try putCatalog(gateway)
            let token = try gateway.token(
                app: CharacterGame.app, scope: "catalog:write tokens:issue clients:write")
            let program = try TestProgram(
                GatewayProcess.program(named: "timelinectl"),
                [
                    "device", "--devices", "3", "--url", gateway.url, "--ca", gateway.ca, "--token",
                    token, "--app", CharacterGame.app, "--json", "--every", "0.2",
                ])
            // One line of progress: every device is ready.
            _ = try program.json(line: 0)
            program.signal(SIGTERM)
            #expect(program.waitForExit(seconds: 30) == .status(0), "\(program.output)")
            let summary = program.output.split(separator: "\n").last ?? ""
            #expect(summary.contains(#""devices":3"#), "\(summary)")
            let left = try gateway.http().request(
                "GET", "/v1/apps/\(CharacterGame.app)/clients", token: token)
            #expect(left["clients"] == [], "\(left.text)")
        }

        @Test func whatIsWrongFromTheStartIsSaid() throws {
            let gateway = try GatewayProcess()
            let (exit, output) = try run(gateway, ["--devices", "1", "--duration", "1"])
            #expect(exit == .status(1))
            #expect(output.contains("unknown-app"), "\(output)")
            #expect(gateway.terminate() == .status(0))
            let (later, _) = try GatewayProcess.run(
                [
                    "device", "--url", "https://127.0.0.1:1", "--token", "x", "--app", "a",
                ], program: GatewayProcess.program(named: "timelinectl"))
            #expect(later == .status(3))
        }
    }
}
