import Foundation
import GatewaySigning
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayOperations
@testable import GatewayServer

@Suite struct ConfigurationDifferenceTests {
    private func state(
        _ texts: [String: String], _ contents: [String: String] = [:]
    ) -> ConfigurationState {
        ConfigurationState(texts: texts, contents: contents.mapValues { Data($0.utf8) })
    }

    @Test func `what is the same is no change`() {
        let state = state(["tls.key": "a.pem", "listen": "x:1"], ["tls.key": "secret"])
        #expect(state.changes(to: state).isEmpty)
    }

    @Test func `values that came, went and became others are told, in order`() {
        let changes = state(["a": "1", "b": "1", "log.level": "info"])
            .changes(to: state(["b": "2", "c": "1", "log.level": "info"]))
        #expect(
            changes == [
                ConfigurationChange(key: "a", before: "1", after: nil),
                ConfigurationChange(key: "b", before: "1", after: "2"),
                ConfigurationChange(key: "c", before: nil, after: "1"),
            ])
    }

    @Test func `a file that became another is a change, whose contents are told to nobody`() throws
    {
        let texts = ["tls.key": "a.pem"]
        let changes = state(texts, ["tls.key": "old"]).changes(to: state(texts, ["tls.key": "new"]))
        #expect(changes.count == 1)
        #expect(
            try changes.first.map { try JSONValue(encoding: $0.document) }
                == ["option": "tls.key", "takesEffect": "now", "contents": "changed"])
    }

    @Test func `the list of denied tokens is one option, whose names are told to nobody`() throws {
        var (before, after) = (state(["denied": "1 entries"]), state(["denied": "1 entries"]))
        before.denied = Denylist([.init(.token(jti: "a"))])
        after.denied = before.denied
        #expect(before.changes(to: after).isEmpty)
        after.denied = Denylist([.init(.token(jti: "b"))])
        #expect(
            try before.changes(to: after).map { try JSONValue(encoding: $0.document) }
                == [["option": "denied", "takesEffect": "now", "contents": "changed"]])
    }

    @Test(arguments: [
        ("denied", true), ("tls.certificate", true), ("issuers.3.keys", true),
        ("retention.age", true),
        ("log.levels", true), ("apns.0.key", true), ("apns.1.widgets.priority", true),
        ("push.widgetsPerDay", true), ("push.intervals.0.kind", true),
        ("webhooks.allowedRanges", true), ("listen", false), ("data", false), ("threads", false),
        ("limits.eventBytes", false), ("tls.certificates", false),
    ])
    func `only some options are taken over by a running gateway`(key: String, isLive: Bool) {
        #expect(ConfigurationChange(key: key, before: nil, after: nil).isLive == isLive)
    }
}

@Suite struct FileWatchTests {
    private func looks(_ watch: inout FileWatch, _ paths: [String]...) -> [Bool] {
        paths.map { watch.look($0) }
    }

    @Test func `a file that is written, replaced, removed or comes is another`() throws {
        let folder = try temporaryDirectory()
        let file = try temporaryFile("one", named: "file", in: folder)
        var watch = FileWatch()
        #expect(looks(&watch, [file], [file]) == [false, false])
        _ = try temporaryFile("two, longer", named: "file", in: folder)
        #expect(looks(&watch, [file], [file]) == [true, false])
        try FileManager.default.removeItem(atPath: file)
        #expect(looks(&watch, [file], [file]) == [true, false])
        _ = try temporaryFile("one", named: "file", in: folder)
        #expect(looks(&watch, [file], [file]) == [true, false])
    }

    @Test func `a link that names another folder is noticed, as mounted secrets change`() throws {
        let folder = try temporaryDirectory()
        let manager = FileManager.default
        for name in ["1", "2"] {
            let version = folder + "/" + name
            try manager.createDirectory(atPath: version, withIntermediateDirectories: true)
            _ = try temporaryFile("same", named: "tls.crt", in: version)
        }
        let link = folder + "/current"
        try manager.createSymbolicLink(atPath: link, withDestinationPath: "1")
        let file = link + "/tls.crt"
        var watch = FileWatch()
        #expect(looks(&watch, [file]) == [false])
        let next = folder + "/next"
        try manager.createSymbolicLink(atPath: next, withDestinationPath: "2")
        #expect(rename(next, link) == 0)
        #expect(looks(&watch, [file], [file]) == [true, false])
    }

    @Test func `a file that changed after it was read is a change at the first look`() throws {
        let folder = try temporaryDirectory()
        let files = try ["1", "2"].map { try temporaryFile($0, named: $0, in: folder) }
        let text = "publicURL: https://gateway.test\nlocalIssuer: true\n"
        let file = try temporaryFile(
            text + "tls: { certificate: \(files[0]), key: \(files[1]) }", in: folder)
        for changed in files + [file] {
            let configuration = try GatewayConfiguration(
                ConfigurationLayers(file: file, flags: ["data": folder], environment: [:]))
            var unread = FileWatch()
            var watch = FileWatch()
            try Data((text + "changed: yes").utf8).write(to: URL(filePath: changed))
            let found = [[:], configuration.filesRead, configuration.filesRead].map { read in
                read.isEmpty
                    ? unread.look(configuration.watchedFiles)
                    : watch.look(configuration.watchedFiles, read: read)
            }
            #expect(found == [false, true, false])
        }
    }

    @Test func `a file that is watched only now is no change`() throws {
        let (one, two) = (try temporaryFile("1"), try temporaryFile("2"))
        var watch = FileWatch()
        #expect(looks(&watch, [one], [one, two], [two]) == [false, false, false])
    }
}

/// Paths that a configuration may name.
@Suite struct ConfigurationFileTests {
    @Test func `only regular files are read, and none waits`() throws {
        let directory = try temporaryDirectory()
        let text = try temporaryFile("text", named: "text", in: directory)
        let empty = try temporaryFile("", named: "empty", in: directory)
        let pipe = directory + "/pipe"
        try #require(mkfifo(pipe, 0o600) == 0)
        #expect(ConfigurationFile.contents(of: text) == Data("text".utf8))
        #expect(ConfigurationFile.contents(of: empty) == Data())
        for path in [pipe, "/dev/zero", "/dev/null", directory, directory + "/none", ""] {
            #expect(ConfigurationFile.contents(of: path) == nil, "\(path)")
        }
        let large = directory + "/large"
        _ = FileManager.default.createFile(atPath: large, contents: nil)
        try #require(truncate(large, ConfigurationFile.bytesMax + 1) == 0)
        #expect(ConfigurationFile.contents(of: large) == nil)
    }
}

/// The configuration that the dashboard shows.
@Suite struct ShownConfigurationTests {
    private func options(_ lines: [String]) throws -> JSONObject {
        let file = try temporaryFile(
            ([
                "data: /tmp/data", "publicURL: https://gateway.test", "localIssuer: true",
                "tls: { certificate: a.pem, key: b.pem }",
            ] + lines).joined(separator: "\n"))
        let configuration = try GatewayConfiguration(
            ConfigurationLayers(file: file, flags: [:], environment: [:]))
        return try #require(configuration.shown.options.objectValue)
    }

    @Test func `push budgets and intervals are shown where anything is pushed`() throws {
        let options = try options([
            "webhooks: { enabled: true }",
            "push:", "  widgetsPerDay: 24", "  activitiesPerDay: 100", "  interval: 10m",
            "  intervals: [{ kind: com.mygame.quests, interval: 1h }]",
        ])
        #expect(options["push.widgetsPerDay"] == 24 && options["push.backgroundPerDay"] == 24)
        #expect(options["push.activitiesPerDay"] == 100)
        #expect(options["push.quietActivitiesPerDay"] == 1_440)
        #expect(options["push.interval"] == "600 s")
        #expect(options["push.intervals.com.mygame.quests"] == "3600 s")
        #expect(options["file"]?.stringValue?.hasSuffix(".yaml") == true)
        #expect(try self.options([])["push.interval"] == nil)
    }
}
