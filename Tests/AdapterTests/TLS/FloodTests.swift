import COpenSSL
import Foundation
import GatewayTestSupport
import Glibc
import NIOCore
import Testing

@testable import GatewayTLS

/// Readers of streams that send data although they have no reason to.
@Suite(.serialized) struct StreamFloodTests {
    private let servers = TestServers()

    enum Flood: CaseIterable {
        case records
        case keyUpdates
    }

    private func flood(_ kind: Flood, _ count: Int, of client: RawClient) throws -> [UInt8] {
        try client.withheld {
            for _ in 0..<count {
                switch kind {
                case .records: try client.write([1])
                case .keyUpdates: client.updateKeys()
                }
            }
        }
    }

    /// Records how much of the flood is unread when its own channel first reads.
    private final class Bystander: ChannelInboundHandler, RemovableChannelHandler {
        typealias InboundIn = ByteBuffer
        private let left: Record<Int?>
        private let count: () -> Int

        init(_ left: Record<Int?>, _ count: @escaping () -> Int) {
            (self.left, self.count) = (left, count)
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let count = count()
            left.change { if $0 == nil { $0 = count } }
            context.fireChannelRead(data)
        }
    }

    private static func pending(_ socket: Int32, _ request: UInt) -> Int {
        var bytes: Int32 = 0
        return ioctl(socket, request, &bytes) == 0 ? Int(bytes) : 0
    }

    /// While the loop is busy, two readers send megabytes, and another peer sends one byte. That
    /// byte is read long before the floods are, although none of the readers is cut off.
    @Test(arguments: Flood.allCases)
    func aFloodLeavesTheLoopItsSockets(kind: Flood) throws {
        let house = try servers.house { $0.settings.readerInput = .unlimited }
        let talkers = try (0..<2).map { try house.stream($0).0 }
        // A release build would close their sockets after their last use.
        defer { withExtendedLifetime(talkers) {} }
        let (client, connection) = try house.connect(2)
        let count = kind == .records ? 60_000 : 25_000
        let floods = try talkers.map { try flood(kind, count, of: $0) }
        let total = floods.reduce(0) { $0 + $1.count }

        let left = Record<Int?>(nil)
        let streams = house.streams
        let sockets = talkers.map(\.socket)
        try connection.onLoop { _ in
            let descriptors = streams.places.occupants.map(\.descriptor)
            let bystander = Bystander(left) {
                let (unread, unsent) = (UInt(FIONREAD), UInt(TIOCOUTQ))
                return descriptors.reduce(0) { $0 + Self.pending($1, unread) }
                    + sockets.reduce(0) { $0 + Self.pending($1, unsent) }
            }
            try connection.channel.pipeline.syncOperations.addHandler(
                bystander, position: .first)
        }
        let (isBlocked, goesOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        streams.loop.execute {
            isBlocked.signal()
            goesOn.wait()
        }
        isBlocked.wait()
        for (talker, bytes) in zip(talkers, floods) {
            // All of it must be in the kernel before the loop continues.
            var size = Int32(clamping: bytes.count)
            setsockopt(talker.socket, SOL_SOCKET, SO_SNDBUFFORCE, &size, 4)
            try talker.sendPlain(bytes)
        }
        try client.write([7])
        goesOn.signal()
        let unread = left.wait("the bystander's turn") { $0 != nil } ?? 0
        #expect(unread > total / 2, "left of \(total)")
        connection.received.wait { $0 == [7] }
        // None of it is lost, either.
        let expected = UInt32(count)
        try blockUntil("every record is read") {
            try streams.onLoop { streams.places.occupants.map(\.recordsRead) }
                == [expected, expected]
        }
    }

    /// A reader that keeps sending gets an alert and is disconnected; others on the loop are not
    /// affected.
    @Test(arguments: Flood.allCases) func aTalkerIsEnded(kind: Flood) throws {
        let house = try servers.house { $0.settings.closeTimeout = .hours(24) }
        let (talker, stream) = try house.stream(0)
        let (client, other) = try house.stream(1)
        try? talker.sendPlain(try flood(kind, kind == .records ? 4_000 : 400, of: talker))
        let error = #expect(throws: TestFailure.self) { try talker.read(1) }
        #expect(error?.description.contains("unexpected message") == true)
        stream.news.wait { $0 == [.inputClosed] }
        #expect(try stream.send([1]) == .refused)
        #expect(house.server.counters.snapshot().streamsEnded[.flood] == 1)
        #expect(try other.send([5]) == .sent)
        #expect(try client.read(1) == [5])
        #expect(other.news.now.isEmpty)
        // It may not keep sending while the gateway waits for its end, either.
        let more = [UInt8](repeating: 23, count: 400_000)
        try? talker.sendPlain(more)
        RawClient.drain(talker.socket)
        try blockUntil("it is closed") { try house.streams.countNow == 1 }
    }

    @Test func aTalkerWithOpenSSLIsEndedToo() throws {
        let house = try servers.house { $0.settings.closeTimeout = .milliseconds(50) }
        let (talker, stream) = try house.stream { $0.version = TLS1_2_VERSION }
        #expect(try stream.keepsOpenSSL)
        for _ in 0..<40 { try? talker.write(pattern(10_000)) }
        stream.news.wait { $0 == [.inputClosed] }
        #expect(house.server.counters.snapshot().streamsEnded[.flood] == 1)
    }

    /// The budget suffices for ordinary readers, who update keys now and then.
    @Test func aFewWordsAreAllowed() throws {
        let house = try servers.house()
        let (client, stream) = try house.stream()
        try client.sendPlain(try flood(.keyUpdates, 50, of: client))
        try client.sendPlain(try flood(.records, 500, of: client))
        try blockUntil("every record is read") {
            try house.streams.onLoop { house.streams.places.occupants.first?.recordsRead } == 550
        }
        #expect(stream.news.now.isEmpty)
    }

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func theRestOfARecordHasToCome(version: Int32) throws {
        let house = try servers.house { $0.settings.recordTimeout = .milliseconds(50) }
        var count = 0
        // Again where this process was too slow for the second part.
        try blockUntil("a record in two parts is read") {
            let (half, first) = try house.stream(count) { $0.version = version }
            let (whole, second) = try house.stream(count + 1) { $0.version = version }
            count += 2
            let record = try half.withheld { try half.write(pattern(1_000)) }
            let other = try whole.withheld { try whole.write(pattern(1_000)) }
            try whole.sendPlain(Array(other[..<500]))
            try? whole.sendPlain(Array(other[500...]))
            try half.sendPlain(Array(record[..<500]))
            #expect(try half.readToGoodbye().isEmpty)
            first.news.wait { $0 == [.inputClosed] }
            #expect(house.server.counters.snapshot().streamsEnded[.incompleteRecord] ?? 0 > 0)
            return try second.send([2]) == .sent && (try? whole.read(1)) == [2]
                && second.news.now.isEmpty
        }
    }
}

/// Records without content: a peer may send some, but not little else.
@Suite(.serialized) struct EmptyRecordTests {
    private let servers = TestServers()
    private let reported = Record<[PeerViolation]>([])

    private func server() throws -> TestServer {
        try servers.start {
            // Otherwise a flood that takes seconds is none.
            $0.settings.emptyRecords.perSecond = 1
            $0.settings.onViolation = { [reported] _, violation, _ in
                reported.change { $0.append(violation) }
            }
        }
    }

    /// Until a connection is open, only the bytes of its input count.
    private func expectAnswer(to client: RawClient) throws {
        #expect(try client.read(1) == [0])
    }

    private func expectEnd(of client: RawClient, at server: TestServer) throws {
        let error = #expect(throws: TestFailure.self) {
            while true { _ = try client.read(1) }
        }
        #expect(error?.description.contains("unexpected message") == true, "\(error as Any)")
        let connection = try server.connection()
        connection.seen.wait { $0.contains(.failed(.protocolViolation(.emptyRecords))) }
        server.waitForCounts("one end") { $0.connectionsEnded[.emptyRecords] == 1 }
        #expect(reported.now == [.emptyRecords])
    }

    /// Records of one byte pay for themselves, not for a key update each.
    @Test(arguments: [false, true]) func keyUpdatesEndAConnection(withContent: Bool) throws {
        let server = try server()
        let client = try server.client { $0.version = TLS1_3_VERSION }.handshake()
        try client.write([0])
        try expectAnswer(to: client)
        let flood = try client.withheld {
            for _ in 0..<2_000 {
                client.updateKeys()
                if withContent { try client.write([1]) }
            }
        }
        try client.sendPlain(flood)
        try expectEnd(of: client, at: server)
    }

    /// OpenSSL itself ends a connection after 32 empty records in a row.
    @Test func emptyRecordsEndAConnection() throws {
        let server = try server()
        let sealing = try SealingClient(server)
        let nothing = (RecordContent.applicationData, [UInt8]())
        try sealing.send([(.applicationData, [0])])
        try expectAnswer(to: sealing.client)
        for _ in 0..<40 {
            try sealing.send(Array(repeating: nothing, count: 31) + [(.applicationData, [1])])
        }
        try expectEnd(of: sealing.client, at: server)
    }

    /// How a client may cut and pad its content.
    @Test(arguments: [0, 1_024, 4_096, 16_384]) func contentIsFree(padding: Int) throws {
        let server = try server()
        let client = try server.client { $0.version = TLS1_3_VERSION }.handshake()
        SSL_set_block_padding(client.ssl, padding)
        let (count, pause) = padding == 0 ? (20_000, 1_000) : (200, 20)
        for number in 0..<count {
            try client.write([UInt8(truncatingIfNeeded: number)])
            if number % pause == 0 { SSL_key_update(client.ssl, SSL_KEY_UPDATE_NOT_REQUESTED) }
        }
        #expect(try client.read(count) == (0..<count).map { UInt8(truncatingIfNeeded: $0) })
        // The beginning of the large record arrives with the small one.
        for round in 0..<100 {
            try client.write(pattern(200, seed: round))
            try client.write(pattern(16_000, seed: round))
            #expect(
                try client.read(16_200) == pattern(200, seed: round) + pattern(16_000, seed: round))
        }
        #expect(reported.now == [])
    }
}
