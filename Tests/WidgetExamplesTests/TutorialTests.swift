import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// What the tutorial's reader has at the end, and does then.
@Suite(.serialized, .timeLimit(.minutes(2))) struct TutorialTests {
    private static let app = "com.example.ferry"
    private static let resources = #filePath.replacing(
        "Tests/WidgetExamplesTests/TutorialTests.swift",
        with: "Sources/TimelineClient/TimelineClient.docc/Resources/")

    @Test func theWidgetFollowsTheServer() throws {
        let gateway = try GatewayProcess()
        let backend = try gateway.token(app: Self.app, scope: "catalog:write changes:write")
        let http = gateway.http()
        let put = try http.request(
            "PUT", "/v1/apps/\(Self.app)/catalog", token: backend,
            headers: [("Content-Type", "application/yaml")],
            body: String(contentsOfFile: Self.resources + "Ferry-catalog.yaml", encoding: .utf8))
        #expect(put.status == 201, "\(put.text)")

        let directory = try GatewayProcess.temporaryDirectory()
        func server(says minutes: Int) throws {
            try "\(minutes)\n".write(
                toFile: directory + "/minutes-late", atomically: true, encoding: .utf8)
        }
        try server(says: 0)
        let phone = try gateway.token(app: Self.app, scope: "client", sub: "my-phone")
        let ferry = Process()
        ferry.executableURL = URL(
            filePath: try GatewayProcess.program(named: "ferry-tutorial"))
        ferry.currentDirectoryURL = URL(filePath: directory)
        ferry.environment = [
            "FERRY_GATEWAY": gateway.url, "FERRY_CA": gateway.ca, "FERRY_TOKEN": phone,
        ]
        let output = Pipe()
        ferry.standardOutput = output
        try ferry.run()
        defer {
            ferry.terminate()
            ferry.waitUntilExit()
        }
        var lines = Lines(output.fileHandleForReading)
        #expect(lines.next() == "Ferry: on time")

        try server(says: 12)
        let event = CloudEvent(
            source: "harbour", id: "1",
            change: Change(entity: "Departure", properties: ["minutesLate"]))
        let post = try http.request(
            "POST", "/v1/apps/\(Self.app)/changes", token: backend,
            headers: [("Content-Type", "application/cloudevents+json")], body: event.json.text)
        #expect(post.status == 202, "\(post.text)")
        #expect(lines.next() == "Ferry: 12 minutes late")
    }

    /// Each stage has what the one before had, as its reader types it.
    @Test func everyStageGoesOnFromTheOneBefore() throws {
        var before: [Substring] = []
        for name in ["Ferry-1", "Ferry-2", "Ferry-3", "Ferry-4", "Final/Ferry-5"] {
            let text = try String(
                contentsOfFile: Self.resources + name + ".swift", encoding: .utf8)
            let lines = text.split(separator: "\n")
            var rest = lines[...]
            for line in before {
                // The end of a call that goes on now is the one line that changes.
                guard let place = rest.firstIndex(of: line) else {
                    #expect(line.hasSuffix("widgets: [widget])"), "\(name): \(line)")
                    continue
                }
                rest = rest[(place + 1)...]
            }
            #expect(lines.count > before.count)
            before = lines
        }
    }
}

/// The lines that a program prints.
private struct Lines {
    private let handle: FileHandle
    private var buffer = Data()

    init(_ handle: FileHandle) { self.handle = handle }

    /// The next line; `nil` when no more come.
    mutating func next() -> String? {
        while true {
            if let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
                let line = String(decoding: buffer[..<end], as: UTF8.self)
                buffer = Data(buffer[buffer.index(after: end)...])
                return line
            }
            let data = handle.availableData
            guard !data.isEmpty else { return nil }
            buffer += data
        }
    }
}
