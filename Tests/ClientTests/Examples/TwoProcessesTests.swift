import Foundation
import GatewayTestSupport
import Testing
import TimelineRuntime
import WidgetModel

/// An app and its widget extension as two real processes that share one archive, with the real
/// daemon: whatever is killed, no other process loses what it knows.
@Suite(.serialized, .timeLimit(.minutes(30))) struct TwoProcessesTests {
    private static let app = "com.example.lamp"
    private static let kinds = ["com.example.lamp.light", "com.example.lamp.room"]
    private static let catalog = """
        app: com.example.lamp
        entities: { Lamp: {}, Room: {} }
        widgets:
          - kind: com.example.lamp.light
            configuration: static
            families: [systemSmall]
            dependsOn: [{ entity: Lamp }]
          - kind: com.example.lamp.room
            configuration: static
            families: [systemSmall]
            dependsOn: [{ entity: Room }]
          - kind: com.example.lamp.switch
            configuration: control
            dependsOn: [{ entity: Lamp }]
        """

    private let gateway: GatewayProcess
    private let backend: Backend
    private let directory: String
    private let environment: [String: String]

    init() throws {
        gateway = try GatewayProcess()
        backend = try Backend(gateway, app: Self.app, catalog: Self.catalog)
        directory = try GatewayProcess.temporaryDirectory()
        environment = [
            "TIMELINE_GATEWAY_URL": gateway.url, "TIMELINE_GATEWAY_CA": gateway.ca,
            "TIMELINE_GATEWAY_TOKEN": try gateway.token(
                app: Self.app, scope: "client", sub: "my-phone"),
            "TIMELINE_CLIENT_ARCHIVE": directory + "/archive", "LAMP": directory,
        ]
    }

    // MARK: Processes

    private func start(_ arguments: String...) throws -> TestProgram {
        try TestProgram(
            GatewayProcess.program(named: "lamp-processes"), arguments, environment: environment)
    }

    private func run(_ arguments: String...) throws {
        let program = try TestProgram(
            GatewayProcess.program(named: "lamp-processes"), arguments, environment: environment)
        let exit = program.waitForExit(seconds: Patience.seconds)
        try #require(exit == .status(0), "\(arguments): \(program.standardErrorTail)")
    }

    private func timelinectl(_ arguments: [String]) throws -> TestProgram {
        try TestProgram(GatewayProcess.program(named: "timelinectl"), arguments)
    }

    /// Uses the extension as soon as it answers; returns what is printed.
    @discardableResult
    private func use(_ action: String, _ options: String...) throws -> String {
        var output = ""
        try wait(for: action) {
            let program = try timelinectl(["extension", action, directory + "/archive"] + options)
            let exit = program.waitForExit(seconds: Patience.seconds)
            try #require(exit == .status(0) || exit == .status(3), "\(program.standardErrorTail)")
            output = program.waitForOutput() ?? ""
            return exit == .status(0)
        }
        return output
    }

    private func lines(_ file: String) -> Int {
        let text = (try? String(contentsOfFile: directory + "/" + file, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").count
    }

    private func wait(
        for what: String, of program: TestProgram? = nil, _ holds: () throws -> Bool
    ) throws {
        try blockUntil(what, details: { program?.standardErrorTail ?? "" }, holds)
    }

    // MARK: Results

    private func expectRegistered(push: String, control: String?) throws {
        let registration = try #require(try backend.registration(of: "my-phone"))
        #expect(try backend.registeredKinds(of: "my-phone") == Self.kinds)
        let delivery = (registration["delivery"]?.arrayValue ?? []).compactMap(\.objectValue)
        #expect(delivery.map { $0["type"] } == ["stream", "apns"])
        #expect(delivery.last?["token"] == masked(push), "\(delivery)")
        let controls = (registration["controls"]?.arrayValue ?? []).map { $0.objectValue?["id"] }
        #expect(controls == (control.map { [.string($0)] } ?? []))
    }

    /// Returns a push token as the gateway displays it.
    private func masked(_ push: String) -> JSONValue {
        let text = push.utf8.map { String($0, radix: 16) }.joined()
        return .string(text.prefix(8) + "…")
    }

    private func change() throws { try backend.post(Change(entity: "Lamp")) }

    /// Returns whether the archive shows the lamp as lit; `nil` while it has no timeline of it.
    private func isShownLit() throws -> Bool? {
        let archive = ClientArchive(directory: directory + "/archive")
        let light = WidgetInfo(kind: "com.example.lamp.light", family: .systemSmall)
        let environment = try WidgetContextRules().environment(
            of: light, with: archive.traits(of: light), at: .homeScreen, on: WidgetDevice(.iOS))
        guard let timeline = try archive.timeline(of: light),
            case .toggle(let isOn, _, _)? = timeline.node(at: .now, in: environment)?.content
        else { return nil }
        return isOn
    }

    /// Returns the numbers of requests for the light's timeline and for the room's.
    private func builds() -> [Int] {
        let text = (try? String(contentsOfFile: directory + "/builds", encoding: .utf8)) ?? ""
        let kinds = text.split(separator: "\n")
        return ["light", "room"].map { name in kinds.count { $0.hasSuffix(name) } }
    }

    // MARK: Tests

    @Test func theAppInteractsAndTheExtensionBuilds() throws {
        // The app runs before the extension: its data waits in the archive.
        try run("push", "1-token")
        #expect(try backend.registration(of: "my-phone") == nil)
        let widgets = try start("extension")
        try wait(for: "the first timelines", of: widgets) { try isShownLit() == false }
        try wait(for: "the room", of: widgets) { builds() == [1, 1] }
        try expectRegistered(push: "1-token", control: nil)
        try run("controls", "hall")
        try expectRegistered(push: "1-token", control: "hall")
        let preview = try timelinectl(["preview", directory + "/archive", "--port", "0"])
        let address = try #require(preview.waitForLine(prefix: "ready "))
        let browser = TestHTTP(url: String(address.dropFirst(6).dropLast()), ca: "/dev/null")
        #expect(try browser.request("GET", "/").text.contains(">Dark<"))
        try run("app")
        #expect(try isShownLit() == false, "only the extension builds")
        try change()
        try wait(for: "the lamp", of: widgets) { try isShownLit() == true }
        #expect(builds() == [2, 1])
        #expect(widgets.standardErrorTail.contains("light has entries 60 s apart"))
        try wait(for: "the page", of: preview) {
            try browser.request("GET", "/").text.contains(">Lit<")
        }
        try run("push", "2-token")
        try expectRegistered(push: "2-token", control: "hall")
    }

    @Test func theCodeSaysWhatItDeclaresAndDrawsItsPreviews() throws {
        let (code, catalog) = (directory + "/code.json", directory + "/catalog.yaml")
        let program = try start("declarations")
        let declared = try #require(program.waitForOutput())
        try declared.write(toFile: code, atomically: true, encoding: .utf8)
        for (name, status) in [("room", 0), ("hall", 1)] as [(String, Int32)] {
            try Self.catalog.replacing("lamp.room", with: "lamp.\(name)")
                .write(toFile: catalog, atomically: true, encoding: .utf8)
            let check = try timelinectl(["catalog", "check", catalog, "--declared", code])
            #expect(check.waitForExit() == .status(status))
            let faults = check.standardErrorTail
            #expect(faults.contains("lack `com.example.lamp.room`") == (status == 1), "\(faults)")
        }
        try run("previews", directory + "/previews")
        let files = try FileManager.default.contentsOfDirectory(atPath: directory + "/previews")
        #expect(files == ["1-com-example-lamp-light-systemSmall.timeline"])
        let archive = directory + "/previews/" + (files.first ?? "")
        #expect(try String(contentsOfFile: archive, encoding: .utf8).contains("Dark"))
    }

    @Test func whatADeviceDoesReachesTheExtensionAndTheApp() throws {
        let (light, room) = (Self.kinds[0], Self.kinds[1])
        var widgets = try start("extension")
        try wait(for: "the first timelines", of: widgets) { try isShownLit() == false }
        try wait(for: "the room", of: widgets) { builds() == [1, 1] }
        #expect(try use("gallery") == "none\n", "the app was never launched")
        let cards = try use("stack")
        #expect(cards.contains("☐ Dark") && cards.contains("( In the hall )"))
        try use("tap", "--kind", light)
        try wait(for: "the lamp", of: widgets) { try isShownLit() == true }
        // No change was posted: the intent asks the shared center for the room.
        try wait(for: "the room again", of: widgets) { builds() == [2, 2] }
        try use("reload", "--kind", room)
        try wait(for: "the room once more", of: widgets) { builds() == [2, 3] }
        // A process performs what an earlier one has drawn.
        widgets.kill()
        widgets = try start("extension")
        #expect(try use("mirror", "--kind", light).contains("☐ Dark"))
        #expect(try isShownLit() == false)
        // Only the app rings; it does not run yet.
        try use("tap", "--kind", room)
        #expect(lines("bell") == 0)
        let before = builds()[0]
        let app = try start("listen")
        try wait(for: "the app", of: app) {
            try use("tap", "--kind", room)
            return lines("bell") > 0
        }
        try wait(for: "what the app reloads", of: widgets) { builds()[0] == before + 1 }
        #expect(try use("gallery").contains(light), "the app was launched")
        try use("open", "--kind", room)
        #expect(lines("opened") == 1)
        let second = try start("extension")
        #expect(second.waitForExit(seconds: Patience.seconds) == .status(1), "one archive")
    }

    @Test func eachExtensionRegistersItsOwnWidgets() throws {
        func start(_ name: String) throws -> TestProgram {
            let own = [
                "TIMELINE_CLIENT_ARCHIVE": directory + "/" + name, "TIMELINE_CLIENT_SHARED": "1",
            ]
            return try TestProgram(
                GatewayProcess.program(named: "lamp-processes"), [name],
                environment: environment.merging(own) { $1 })
        }
        func isRegistered() throws -> Bool {
            try backend.registeredKinds(of: "my-phone") == Self.kinds
        }
        var programs = try [start("light"), start("room")]
        try wait(for: "both", of: programs[0]) {
            try isRegistered() && builds().allSatisfy { $0 > 0 }
        }
        programs[0].kill()
        programs[0] = try start("light")
        let before = builds()[0]
        try change()
        try wait(for: "the lamp", of: programs[0]) { builds()[0] > before }
        #expect(try isRegistered())
        withExtendedLifetime(programs) {}
    }

    @Test func anExtensionThatIsKilledWhileItBuildsGoesOnWithWhatTheAppHasDone() throws {
        var widgets = try start("extension")
        try wait(for: "the first timelines", of: widgets) { try isShownLit() == false }
        try wait(for: "the room", of: widgets) { builds() == [1, 1] }
        try run("controls", "hall")
        try Data().write(to: URL(filePath: directory + "/slow"))
        try run("app")
        try change()
        try wait(for: "a build that takes long", of: widgets) { builds() == [2, 1] }
        widgets.kill()
        #expect(try isShownLit() == false, "what was there before is whole")
        // The app continues alone.
        try run("push", "3-token")
        try expectRegistered(push: "3-token", control: "hall")
        try FileManager.default.removeItem(atPath: directory + "/slow")
        widgets = try start("extension")
        try wait(for: "the lamp", of: widgets) { try isShownLit() == true }
        #expect(builds() == [3, 1], "the room was not told, and is not built again")
        try expectRegistered(push: "3-token", control: "hall")
        try run("app")
        try change()
        try wait(for: "the lamp", of: widgets) { try isShownLit() == false }
    }

    @Test func anAppThatIsKilledWhileItRegistersTakesNothingOfTheExtensionAway() throws {
        let widgets = try start("extension")
        try wait(for: "the first timelines", of: widgets) { try isShownLit() == false }
        try run("push", "4-token")
        // The gateway does not answer; the app waits for it, and is killed.
        kill(gateway.pid, SIGSTOP)
        let app: TestProgram
        do {
            defer { kill(gateway.pid, SIGCONT) }
            app = try start("push", "5-token")
            let push = directory + "/archive/push.json"
            let token = "5-token".utf8.map { String($0, radix: 16) }.joined()
            try wait(for: "what the app knows", of: app) {
                try String(contentsOfFile: push, encoding: .utf8).contains(token)
            }
            app.kill()
        }
        try run("app")
        try change()
        try wait(for: "the lamp", of: widgets) { try isShownLit() == true }
        // The next process registers it again.
        try run("push", "5-token")
        try expectRegistered(push: "5-token", control: nil)
    }
}
