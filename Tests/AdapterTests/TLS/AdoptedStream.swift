import Foundation
import GatewayTLS
import GatewayTestSupport
import NIOCore
import NIOPosix
import Testing

/// A stream that left its channel, as a test uses it.
final class AdoptedStream: @unchecked Sendable {
    // Sound: `stream` is used on the loop only.
    private let streams: TLSStreams
    private let stream: TLSStream
    let news: Record<[Seen]>

    init(_ streams: TLSStreams, _ stream: TLSStream, _ news: Record<[Seen]>) {
        self.streams = streams
        self.stream = stream
        self.news = news
    }

    func send(_ bytes: [UInt8]) throws -> StreamWrite {
        try onLoop { bytes.withUnsafeBytes { self.streams.send($0, to: self.stream) } }
    }

    /// Sends bytes; the caller is on the loop.
    func sendNow(_ bytes: [UInt8]) -> StreamWrite {
        bytes.withUnsafeBytes { streams.send($0, to: stream) }
    }

    func end(_ farewell: [UInt8] = []) throws {
        try onLoop { farewell.withUnsafeBytes { self.streams.end(self.stream, farewell: $0) } }
    }

    func close() throws { try onLoop { self.streams.close(self.stream) } }

    var queuedBytes: Int {
        get throws { try onLoop { self.stream.queuedBytes } }
    }

    /// Whether the stream still has OpenSSL's object.
    var keepsOpenSSL: Bool {
        get throws { try onLoop { self.stream.keepsOpenSSL } }
    }

    func onLoop<Result: Sendable>(
        _ body: @escaping @Sendable () throws -> Result
    ) throws -> Result {
        try streams.onLoop(body)
    }
}

extension TLSStreams {
    func onLoop<Result: Sendable>(
        _ body: @escaping @Sendable () throws -> Result
    ) throws -> Result {
        try loop.submit(body).wait()
    }

    /// The number of streams that are open or closing.
    var countNow: Int {
        get throws { try onLoop { self.count } }
    }
}

/// The streams of a server with one loop, and the callbacks that each owner received.
final class StreamHouse: Sendable {
    let server: TestServer
    let streams: TLSStreams
    private let news: Record<[UInt64: Record<[Seen]>]>

    init(
        _ context: TLSContext? = nil, _ change: (inout TestServer.Options) -> Void = { _ in }
    ) throws {
        var options = TestServer.Options()
        options.echoes = false
        change(&options)
        server = try TestServer(context, options)
        let news = Record<[UInt64: Record<[Seen]>]>([:])
        self.news = news
        streams = TLSStreams(
            loop: server.group.next(), settings: options.settings,
            owner: .init(
                drained: { name in news.now[name]?.change { $0.append(.drained) } },
                ended: { name in news.now[name]?.change { $0.append(.inputClosed) } }))
    }

    /// Connects a client; returns it with its connection, which is still in its channel.
    func connect(
        _ index: Int = 0, _ change: (inout RawClient.Options) -> Void = { _ in }
    ) throws -> (RawClient, Connection) {
        let client = try server.client(change).handshake()
        let connection = try server.connection(index)
        connection.seen.wait { $0.first == .open(client.alpn) }
        return (client, connection)
    }

    /// Detaches a connection from its channel; `nil` when it cannot leave.
    func adopt(_ connection: Connection, name: UInt64 = 0) throws -> AdoptedStream? {
        let heard = Record<[Seen]>([])
        news.change { $0[name] = heard }
        let streams = streams
        return try connection.onLoop { tls in
            tls.detach().flatMap { streams.adopt($0, name: name) }
                .map { AdoptedStream(streams, $0, heard) }
        }
    }

    /// Connects a client; returns it with its stream.
    func stream(
        _ index: Int = 0, _ change: (inout RawClient.Options) -> Void = { _ in }
    ) throws -> (RawClient, AdoptedStream) {
        let (client, connection) = try connect(index, change)
        return (client, try #require(try adopt(connection, name: UInt64(index))))
    }

    func stop() {
        try? streams.onLoop { self.streams.stop() }
        server.stop()
    }
}
