import GatewayTestSupport
import Testing
import WidgetModel

/// A stream may be cut anywhere: whatever its reader did not receive whole is sent again.
@Suite(.alone) struct CutTests {
    @Test(arguments: [(TestHTTPVersion.one, 1), (.two, 4)])
    func aStreamCutAtAnyByteLosesNothing(version: TestHTTPVersion, step: Int) throws {
        let gateway = try LocalGateway()
        let game = try GameFixture(gateway)
        let client = try game.client("phone", ["panda"])
        let http = gateway.http()
        var reader = Reader(cursor: client.cursor)
        // The whole stream: a reconnection time, an id, a notification with the next id.
        var bytes = 1_000
        var cut = 0
        var (cuts, lost) = (0, 0)
        while cut < bytes {
            let change = try game.change(http, ["panda"], run: "cut-\(cut)")
            let broken = try Self.open(game, client, reader.cursor, version, cutAtByte: cut)
            #expect(broken.waitForEnd())
            for block in broken.takeAll() { try reader.take(block) }
            if reader.told < change {
                lost += 1
                let whole = try Self.open(game, client, reader.cursor, version, cutAtByte: nil)
                while reader.told < change {
                    guard case .block(let block) = whole.next() else { break }
                    try reader.take(block)
                }
                bytes = min(bytes, whole.bytesRead + 1)
                whole.close()
                #expect(whole.waitForEnd())
            }
            #expect(reader.told == change, "cut at byte \(cut)")
            cuts += 1
            cut += step
        }
        print(
            "cut: \(version): \(cuts) cuts within \(bytes) bytes, \(lost) before the id was whole"
        )
        #expect(lost > cuts / 2, "the cuts did not cut")
    }

    /// Opens a stream; retries while closed streams that the daemon has not noticed take its
    /// places.
    private static func open(
        _ game: GameFixture, _ client: GameFixture.Client, _ cursor: String,
        _ version: TestHTTPVersion, cutAtByte: Int?
    ) throws -> TestHTTPStream {
        var stream: TestHTTPStream?
        try blockUntil("a place for a stream") {
            let opened = game.stream(client, from: cursor, version: version, cutAtByte: cutAtByte)
            guard let head = opened.head() else {
                throw TestFailure("a stream ended before it began")
            }
            stream = opened
            return head.status != 429
        }
        return try #require(stream)
    }

    private struct Reader {
        private(set) var cursor: String
        private(set) var told: UInt64 = 0
        private var position: UInt64 = 0

        init(cursor: String) {
            self.cursor = cursor
        }

        mutating func take(_ block: ServerSentEvent) throws {
            if let data = block.data { told = max(told, try claims(of: data).sequence) }
            guard let id = block.id else { return }
            let next = try Cursor.sequence(id)
            guard next >= position else { throw TestFailure("\(position), then \(next)") }
            (cursor, position) = (id, next)
        }
    }
}

/// A reader that stops reading delays no one but itself.
@Suite(.alone) struct SlowReaderTests {
    private static let heroes = (0..<200).map { "hero-\($0)" }

    @Test(arguments: [TestHTTPVersion.one, .two])
    func aStalledReaderIsCaughtUpAndOthersNeverWait(version: TestHTTPVersion) throws {
        // A slow machine takes longer for what follows than a stream may stand still.
        let configuration = try GatewayConfiguration(["streams: { stall: 1h }"])
        let gateway = try GatewayProcess(
            data: configuration.folder, configuration: configuration.file)
        let game = try GameFixture(gateway)
        let slow = try (0..<8).map { number in
            let client = try game.client("slow-\(number)", Self.heroes)
            return game.stream(client, version: version, receiveBufferBytes: 4_096)
        }
        let quick = game.stream(try game.client("quick", Self.heroes), version: version)
        for stream in slow + [quick] { try #require(stream.head()?.status == 200) }
        for stream in slow { stream.stopReading() }
        let http = gateway.http()
        // Enough to overflow every buffer on the way: the kernel's alone hold megabytes.
        var (rounds, resident, head) = (0, 0, UInt64(0))
        var quickHeard = Heard()
        while rounds < 90 {
            head = try game.change(http, Self.heroes, run: "round-\(rounds)")
            try quickHeard.read(quick, until: head)
            rounds += 1
            // The first rounds fill pools and caches that stay allocated.
            if rounds == 45 { resident = gateway.residentBytes }
        }
        let grown = gateway.residentBytes - resident
        #expect(grown < 16 << 20, "45 rounds with stalled readers took \(grown) bytes more")
        #expect(quickHeard.statements == rounds * Self.heroes.count, "said once for each change")
        #expect(quickHeard.latest.count == Self.heroes.count)
        let latest = quickHeard.latest
        var statements = 0
        for stream in slow {
            stream.resumeReading()
            var heard = Heard()
            try heard.read(stream, until: head)
            statements = max(statements, heard.statements + heard.summaries)
            for hero in Self.heroes {
                let told = max(heard.latest[hero] ?? 0, heard.latestOfAll)
                #expect(told >= latest[hero] ?? .max, "\(hero) changed and was not told")
            }
            #expect(heard.summaries > 0, "it never lagged: nothing was tested")
        }
        let all = rounds * Self.heroes.count
        #expect(
            statements < all,
            "a stalled reader got all \(all) notifications: kept for it where?")
        print(
            "slow reader: \(version): \(rounds) rounds, memory grew by \(grown) bytes,",
            "\(statements) of \(all) statements reached a stalled reader")
        for stream in slow + [quick] { stream.close() }
        #expect(gateway.terminate() == .status(0))
    }
}

/// The content of a stream; checks that its ids never go back.
private struct Heard {
    private(set) var position: UInt64 = 0
    /// The numbers of notifications that name a character, and of those that name none.
    private(set) var (statements, summaries) = (0, 0)
    private(set) var latest: [String: UInt64] = [:]
    private(set) var latestOfAll: UInt64 = 0

    /// Reads until the stream's id reaches `head`.
    mutating func read(_ stream: TestHTTPStream, until head: UInt64) throws {
        while position < head { try readBlock(stream, of: head) }
    }

    mutating func readBlock(_ stream: TestHTTPStream, of head: UInt64) throws {
        guard case .block(let block) = stream.next() else {
            throw TestFailure("the stream stands at \(position) of \(head)")
        }
        if let data = block.data { take(try claims(of: data)) }
        if let id = block.id {
            let next = try Cursor.sequence(id)
            guard next >= position else { throw TestFailure("\(position), then \(next)") }
            position = next
        }
    }

    private mutating func take(_ notification: ReloadNotification) {
        let named = notification.reload.compactMap { $0.parameters.first?.value }
        if named.count < notification.reload.count || notification.all {
            latestOfAll = max(latestOfAll, notification.sequence)
            summaries += 1
        } else {
            statements += 1
        }
        for hero in named { latest[hero] = max(latest[hero] ?? 0, notification.sequence) }
    }
}
