import COpenSSL
import Foundation
import GatewayTestSupport
import Glibc
import NIOCore
import Testing

@testable import GatewayTLS

/// Readers of streams that send data although they have no reason to.
@Suite(.serialized) struct StreamFloodTests {
    enum Flood: CaseIterable {
        case records
        case keyUpdates
    }

    private func flood(_ kind: Flood, _ count: Int, of client: RawClient) throws -> [UInt8] {
        try client.withheld {
            for _ in 0..<count {
                switch kind {
                case .records: try client.write([1])
                case .keyUpdates:
                    SSL_key_update(client.ssl, SSL_KEY_UPDATE_NOT_REQUESTED)
                    SSL_do_handshake(client.ssl)
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
        let house = try StreamHouse { $0.settings.readerInput = .unlimited }
        defer { house.stop() }
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
        let house = try StreamHouse { $0.settings.closeTimeout = .hours(24) }
        defer { house.stop() }
        let (talker, stream) = try house.stream(0)
        let (client, other) = try house.stream(1)
        try? talker.sendPlain(try flood(kind, kind == .records ? 4_000 : 400, of: talker))
        let error = #expect(throws: RawClient.Failed.self) { try talker.read(1) }
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
        _ = RawClient.readPlain(talker.socket)
        try blockUntil("it is closed") { try house.streams.countNow == 1 }
    }

    @Test func aTalkerWithOpenSSLIsEndedToo() throws {
        let house = try StreamHouse { $0.settings.closeTimeout = .milliseconds(50) }
        defer { house.stop() }
        let (talker, stream) = try house.stream { $0.version = TLS1_2_VERSION }
        #expect(try stream.keepsOpenSSL)
        for _ in 0..<40 { try? talker.write(pattern(10_000)) }
        stream.news.wait { $0 == [.inputClosed] }
        #expect(house.server.counters.snapshot().streamsEnded[.flood] == 1)
    }

    /// The budget suffices for ordinary readers, who update keys now and then.
    @Test func aFewWordsAreAllowed() throws {
        let house = try StreamHouse()
        defer { house.stop() }
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
        let house = try StreamHouse { $0.settings.recordTimeout = .milliseconds(50) }
        defer { house.stop() }
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
