import APNsSimulator
import Foundation
import GatewayTLS
import GatewayTestSupport
import Testing
import WidgetModel

/// Backups of a running gateway, and the state that they restore after a loss.
@Suite(.alone) struct BackupTests {
    /// Runs `timelinectl` with the given arguments.
    private static func run(
        _ arguments: String...
    ) throws -> (exit: GatewayProcessExit, output: String) {
        try GatewayProcess.timelinectl(arguments)
    }

    /// Returns every regular file below a directory, as a path relative to it.
    private static func files(_ directory: String) -> Set<String> {
        let enumerator = FileManager.default.enumerator(atPath: directory)
        var files: Set<String> = []
        while let path = enumerator?.nextObject() as? String {
            if enumerator?.fileAttributes?[.type] as? FileAttributeType == .typeRegular {
                files.insert(path)
            }
        }
        return files
    }

    @Test func `what is lost behind a backup misleads nobody`() throws {
        let gateway = try GatewayProcess()
        let game = try GameFixture(gateway)
        let early = try game.client("early", ["panda"])
        let late = try game.client("late", ["panda", "owl"])
        let http = gateway.http()
        for round in 0..<10 {
            try game.change(http, Array(repeating: "bear", count: 1_000), run: "fill\(round)")
        }
        let poll = try game.poll(early, since: early.cursor)
        let posts = Posts(game, gateway)
        let place = try GatewayProcess.temporaryDirectory()
        let copy = place + "/copy"
        let before = try posts.reached(20)
        let backup = try Self.run("backup", "--data", gateway.data, "--to", copy, "--json")
        try #require(backup.exit == .status(0), "\(backup.output)")
        let manifest = try #require(try JSONValue(parsing: Array(backup.output.utf8)).objectValue)
        let head = try #require(manifest["head"]?.integerValue)
        #expect(head >= Int64(before))
        #expect(manifest["clients"] == 2)
        let lost = try posts.reached(UInt64(head) + 20)
        let unknown = try game.client("unknown", ["panda"])
        let beyond = try game.poll(late, since: late.cursor).cursor
        posts.mayFail()
        gateway.kill()
        #expect(posts.end() == [], "posts failed while the gateway was backed up")

        let data = place + "/data"
        let restore = try Self.run("restore", "--from", copy, "--data", data)
        try #require(restore.exit == .status(0), "\(restore.output)")
        #expect(restore.output.contains("all older cursors are void"))
        let restored = try GatewayProcess(data: data)
        let world = GameFixture(continuing: game, on: restored)
        // Cursors of polls and registrations, from before the backup and from after it.
        for (client, cursor) in [
            (early, poll.cursor), (early, early.cursor), (late, beyond), (late, late.cursor),
        ] {
            let answer = try world.poll(client, since: cursor)
            #expect(answer.stale == ["everything"], "\(client.name) since \(cursor)")
            #expect(try world.poll(client, since: answer.cursor).stale == [])
        }
        #expect(throws: TestFailure.self) { try world.poll(unknown, since: unknown.cursor) }
        // Its sequences are assigned again; a client that saw the first ones must rebuild
        // everything.
        let fresh = try world.poll(late, since: late.cursor).cursor
        let again = try world.change(
            restored.http(), Array(repeating: "owl", count: 200), run: "again")
        #expect(again > lost)
        #expect(try world.poll(late, since: fresh).stale == ["detail character=owl"])
        #expect(try world.poll(late, since: beyond).stale == ["everything"])
    }

    @Test func `a backup has every file that matters, for few to read`() throws {
        let place = try GatewayProcess.temporaryDirectory()
        let data = place + "/data"
        try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: false)
        let made = try DevelopmentCertificates.ensure(
            in: data, now: Int64(Date().timeIntervalSince1970))
        let configuration = place + "/gateway.yaml"
        try """
        tls: { certificate: \(made.certificate), key: \(made.key) }
        localIssuer: true
        webhooks: { enabled: true }
        """.write(toFile: configuration, atomically: true, encoding: .utf8)
        let gateway = try GatewayProcess(data: data, configuration: configuration)
        _ = try GameFixture(gateway)
        let copy = place + "/copy"
        let backup = try Self.run("backup", "--data", gateway.data, "--to", copy)
        try #require(backup.exit == .status(0), "\(backup.output)")
        #expect(backup.output.contains("private keys"))
        let own = Self.files(gateway.data).filter { !$0.hasPrefix("store.") }
        let copied = Self.files(copy)
        #expect(own.subtracting(copied).isEmpty, "left out: \(own.subtracting(copied))")
        #expect(copied.isSuperset(of: ["manifest.json", "store.sqlite", "gateway.json"]))
        #expect(copied.contains { $0.hasPrefix("webhooks/") && $0.hasSuffix(".pem") })
        for file in copied where file.hasPrefix("keys/") || !file.contains("/") {
            let mode = try FileManager.default.attributesOfItem(atPath: copy + "/" + file)
            let original = try? FileManager.default.attributesOfItem(
                atPath: gateway.data + "/" + file)
            let expected = original?[.posixPermissions] as? Int ?? 0o600
            #expect(mode[.posixPermissions] as? Int == expected, "\(file)")
        }
        let twice = try Self.run("backup", "--data", gateway.data, "--to", copy)
        #expect(twice.exit == .status(1) && twice.output.contains("already exists"))
    }

    @Test func `a damaged backup is refused, with the file's name`() throws {
        let gateway = try GatewayProcess()
        _ = try GameFixture(gateway)
        let place = try GatewayProcess.temporaryDirectory()
        let (copy, data) = (place + "/copy", place + "/data")
        try #require(
            try Self.run("backup", "--data", gateway.data, "--to", copy).exit == .status(0))
        for file in Self.files(copy).sorted() {
            let path = URL(fileURLWithPath: copy + "/" + file)
            let whole = try Data(contentsOf: path)
            // Damaged in various places: in a manifest some bytes describe other files.
            let damaged = (0..<3).map { part in
                var damaged = whole
                damaged[part * (whole.count - 1) / 2] ^= 1
                return damaged
            }
            for content in damaged + [whole.dropLast(), nil] {
                if let content {
                    try content.write(to: path)
                } else {
                    try FileManager.default.removeItem(at: path)
                }
                let refused = try Self.run("restore", "--from", copy, "--data", data)
                #expect(refused.exit == .status(1), "\(file) \(content?.count ?? -1)")
                #expect(refused.output.contains(file), "\(refused.output)")
                #expect(!FileManager.default.fileExists(atPath: data))
            }
            try whole.write(to: path)
        }
        #expect(try Self.run("restore", "--from", copy, "--data", data).exit == .status(0))
    }

    @Test func `nothing is restored over what is there`() throws {
        let gateway = try GatewayProcess()
        _ = try GameFixture(gateway)
        let place = try GatewayProcess.temporaryDirectory()
        let (copy, data) = (place + "/copy", place + "/data")
        try #require(
            try Self.run("backup", "--data", gateway.data, "--to", copy).exit == .status(0))
        let running = try Self.run("restore", "--from", copy, "--data", gateway.data)
        #expect(running.exit == .status(1) && running.output.contains("in use"))
        gateway.terminate()
        let full = try Self.run("restore", "--from", copy, "--data", gateway.data)
        #expect(full.exit == .status(1) && full.output.contains("is not empty"))
        try gateway.start()
        // A restore that broke off: neither the gateway nor another restore continues from it.
        try FileManager.default.createDirectory(
            atPath: data + "/.restoring", withIntermediateDirectories: true)
        let again = try Self.run("restore", "--from", copy, "--data", data)
        #expect(again.exit == .status(1) && again.output.contains("interrupted"))
        let served = try GatewayProcess.run(["serve", "--data", data])
        #expect(served.exit != .status(0) && served.output.contains("interrupted"))
        // An empty directory, such as a mounted volume, is accepted.
        try FileManager.default.removeItem(atPath: data + "/.restoring")
        #expect(try Self.run("restore", "--from", copy, "--data", data).exit == .status(0))
    }

    @Test func `devices that are pushed to are told after a new epoch, once`() async throws {
        let world = try PushFixture(asProcess: true)
        try world.register("phone", ["hero"], token: "aa01")
        try world.register("quiet", ["villain"], token: "aa02")
        try world.change(["hero"], run: "one")
        try await world.until("pushed to") { $0.devices["aa01"]?.taken ?? 0 >= 1 }
        world.gateway.terminate()
        let data = world.gateway.data
        try #require(try GatewayProcess.run(["epoch", "new", "--data", data]).exit == .status(0))
        try world.gateway.process.start()
        try await world.until("pushed to") { $0.devices["aa02"]?.taken ?? 0 >= 1 }
        try world.gateway.process.restart()
        try world.register("third", ["owl"], token: "aa03")
        try world.change(["owl"], run: "two")
        try await world.until("pushed to") { $0.devices["aa03"]?.taken ?? 0 >= 1 }
        #expect(world.apns.record.devices["aa02"]?.taken == 1)
        await world.stop()
    }
}

/// A backend that posts without a pause, on a thread of its own.
private final class Posts: @unchecked Sendable {
    // Sound: touched only while `lock` is held.
    private let lock = NSCondition()
    private var last: UInt64 = 0
    private var faults: [String] = []
    private var isAllowedToFail = false
    private var isEnding = false
    private var isOver = false

    init(_ game: GameFixture, _ gateway: GatewayProcess) {
        Thread.detachNewThread { [self] in
            var round = 0
            while !lock.withLock({ isEnding }) {
                round += 1
                do {
                    let sequence = try game.change(
                        gateway.http(), ["panda", "owl"], run: "post\(round)")
                    lock.withLock {
                        last = sequence
                        lock.broadcast()
                    }
                } catch {
                    lock.withLock { if !isAllowedToFail { faults.append("\(error)") } }
                    break
                }
            }
            lock.withLock {
                isOver = true
                lock.broadcast()
            }
        }
    }

    /// Waits until the answers have reached a sequence; returns the last one answered.
    func reached(_ sequence: UInt64) throws -> UInt64 {
        lock.lock()
        defer { lock.unlock() }
        let first = last
        while last < sequence || last == first {
            guard !isOver, lock.wait(until: Date(timeIntervalSinceNow: Patience.seconds)) else {
                throw TestFailure("the posts stopped at \(last): \(faults)")
            }
        }
        return last
    }

    /// Allows posts to fail from now on.
    func mayFail() { lock.withLock { isAllowedToFail = true } }

    /// Ends the posts; returns the errors that occurred while the gateway ran.
    func end() -> [String] {
        lock.lock()
        defer { lock.unlock() }
        isEnding = true
        while !isOver { lock.wait() }
        return faults
    }
}
