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
