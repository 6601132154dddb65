import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// A restored backup lacks the end of the log: no client that knows of it, or may, keeps stale
/// content.
@Suite(.alone) struct RestoreTests {
    /// A data directory, its backup, and a client that saw a change which the backup lacks.
    private struct Loss {
        let gateway: GatewayProcess
        let backup: String
        let game: GameFixture
        let client: GameFixture.Client
        let other: GameFixture.Client
        /// `other`'s cursor, from before the backup.
        let early: String
        /// `client`'s cursor, from after it.
        let late: String

        init() throws {
            gateway = try GatewayProcess()
            game = try GameFixture(gateway)
            client = try game.client("phone", ["panda"])
            other = try game.client("tablet", ["panda", "owl"])
            try game.change(gateway.http(), ["panda"], run: "before")
            early = try game.poll(other, since: other.cursor).cursor
            try #require(gateway.terminate() == .status(0))
            backup = try GatewayProcess.temporaryDirectory() + "/copy"
            try FileManager.default.copyItem(atPath: gateway.data, toPath: backup)
            try gateway.start()
            try game.change(gateway.http(), ["panda", "owl", "panda"], run: "lost")
            late = try game.poll(client, since: client.cursor).cursor
            gateway.kill()
        }

        /// Replaces the lost data directory with the backup.
        func restore() throws {
            try FileManager.default.removeItem(atPath: gateway.data)
            try FileManager.default.copyItem(atPath: backup, toPath: gateway.data)
            try FileManager.default.removeItem(
                atPath: (backup as NSString).deletingLastPathComponent)
        }
    }

    @Test func aNewEpochVoidsEveryOlderCursor() throws {
        let loss = try Loss()
        try loss.restore()
        let running = try GatewayProcess(data: loss.gateway.data)
        let refused = try GatewayProcess.run(["epoch", "new", "--data", loss.gateway.data])
        #expect(refused.exit == .status(1), "a log in use was given an epoch: \(refused.output)")
        running.terminate()
        let opened = try GatewayProcess.run(["epoch", "new", "--data", loss.gateway.data])
        #expect(opened.exit == .status(0), "\(opened.output)")
        try loss.gateway.start()
        for (client, cursor) in [
            (loss.other, loss.early), (loss.other, loss.other.cursor), (loss.client, loss.late),
        ] {
            let poll = try loss.game.poll(client, since: cursor)
            #expect(poll.stale == ["everything"], "\(client.name) since \(cursor)")
            #expect(try loss.game.poll(client, since: poll.cursor).stale == [])
        }
    }

    @Test func aCopyIsKnownAtTheStartAndEveryClientIsTold() throws {
        let loss = try Loss()
        try loss.restore()
        try loss.gateway.start()
        // Clients whose cursors show no loss come first; no one has proved anything yet.
        for (client, cursor) in [
            (loss.other, loss.early), (loss.other, loss.other.cursor),
            (loss.client, loss.client.cursor), (loss.client, loss.late),
        ] {
            let poll = try loss.game.poll(client, since: cursor)
            #expect(poll.stale == ["everything"], "\(client.name) since \(cursor)")
            #expect(try loss.game.poll(client, since: poll.cursor).stale == [])
        }
        // Once only: the copy is the directory from here on.
        let cursor = try loss.game.poll(loss.other, since: "").cursor
        for _ in 0..<2 {
            try loss.gateway.restart()
            #expect(try loss.game.poll(loss.other, since: cursor).stale == [])
        }
    }

    @Test func aLogThatLostItsEndIsKnownAtTheStart() throws {
        let gateway = try GatewayProcess()
        let game = try GameFixture(gateway)
        let client = try game.client("phone", ["panda"])
        let lost = try game.change(gateway.http(), ["panda"], run: "lost")
        // The mark is written later, and names the log's head.
        try blockUntil("marked") {
            try String(contentsOfFile: gateway.data + "/store.mark", encoding: .utf8)
                .split(separator: "\n")
                .contains { $0.split(separator: " ").dropFirst(4).first == "\(lost)" }
        }
        gateway.kill()
        // Everything is in the write-ahead log, including catalog and registration.
        let wal = gateway.data + "/store.sqlite-wal"
        let size = try #require(FileManager.default.attributesOfItem(atPath: wal)[.size] as? Int)
        #expect(truncate(wal, off_t(size - 4_000)) == 0)
        try gateway.start()
        #expect(try game.poll(client, since: client.cursor).stale == ["everything"])
    }

    @Test func withoutALossACursorHoldsAcrossRestarts() throws {
        let gateway = try GatewayProcess()
        let game = try GameFixture(gateway)
        let client = try game.client("phone", ["panda"])
        try game.change(gateway.http(), ["owl"], run: "unrelated")
        for _ in 0..<3 { try gateway.restart() }
        #expect(try game.poll(client, since: client.cursor).stale == [])
        try game.change(gateway.http(), ["panda"], run: "related")
        try gateway.restart()
        #expect(try game.poll(client, since: client.cursor).stale == ["detail character=panda"])
    }
}
