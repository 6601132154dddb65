import CurlMulti
import Foundation
import GatewayCore
import GatewayTestSupport
import Synchronization
import Testing
import WidgetModel

@Suite(.timeLimit(.minutes(30))) struct CurlClientTests {
    static func client(
        _ server: ScriptedServer, _ change: (inout CurlClient.Configuration) -> Void = { _ in }
    ) throws -> CurlClient {
        var configuration = CurlClient.Configuration(name: "test")
        configuration.trust = .file(server.certificate)
        change(&configuration)
        return try CurlClient(configuration)
    }

    static func request(
        _ server: ScriptedServer, deadline: Duration = Patience.duration
    ) throws -> CurlRequest {
        CurlRequest(
            "POST", origin: server.origin, target: "/3/device/00ff",
            fields: try CurlFields([("apns-topic", "com.example.game")]),
            body: Array(#"{"aps":{}}"#.utf8), timeout: deadline)
    }

    /// Returns the code of the error thrown, if it is the client's.
    static func code(
        _ client: CurlClient, _ request: CurlRequest
    ) async -> CurlError.Code? {
        do throws(CurlError) {
            _ = try await client.send(request)
            return nil
        } catch {
            return error.code
        }
    }

    @Test func `nothing goes out unencrypted unless that is allowed`() async throws {
        let server = try ScriptedServer([.ok])
        var request = try Self.request(server)
        request.origin = "http://127.0.0.1:\(server.port)"
        #expect(await Self.code(try Self.client(server), request) == .badRequest)
        #expect(try server.seen().isEmpty)
        // The server speaks TLS, so it does not understand this request.
        let plain = try Self.client(server) { $0.allowsPlainText = true }
        let code = await Self.code(plain, request)
        #expect(code != nil && code != .badRequest)
        #expect(try server.seen() == ["accepted 127.0.0.1"])
        request.origin = "file://localhost"
        #expect(await Self.code(plain, request) == .badRequest)
    }

    @Test func `an answer has its status, its fields and its body`() async throws {
        let server = try ScriptedServer([.ok, .reason, .busy, .redirect, .interim])
        let client = try Self.client(server)
        let request = try Self.request(server)
        let ok = try await client.send(request)
        #expect(ok.status == 200 && ok.body == [] && ok.failure == nil)
        #expect(ok.head["apns-id"] == "id-1" && ok.head["retry-after"] == nil)
        let reason = try await client.send(request)
        #expect(reason.status == 400 && reason.failure == nil)
        #expect(String(decoding: reason.body, as: UTF8.self) == #"{"reason":"BadDeviceToken"}"#)
        let busy = try await client.send(request)
        #expect(busy.status == 429 && busy.head["retry-after"] == "120")
        let redirect = try await client.send(request)
        #expect(redirect.status == 302)
        let interim = try await client.send(request)
        #expect(interim.status == 200 && interim.head["apns-id"] == "id-9")
        #expect(client.stats.inFlight == 0)
        #expect(client.stats.connections == 1 && client.stats.handles == 1)
        await client.drain()
        #expect(client.stats == CurlClient.Stats())
    }

    // MARK: Failures

    @Test(arguments: [
        ([ScriptedServer.Action.refuse, .ok], CurlError.Code.notProcessed),
        ([.ok, .refuse, .ok], .notProcessed),
        ([.close, .ok], .connectionEnded),
        ([.ok, .close, .ok], .connectionEnded),
        ([.reset, .ok], .streamReset),
        ([.ok, .reset, .ok], .streamReset),
    ])
    func `a request that fails is sent once, and the next one works`(
        script: [ScriptedServer.Action], code: CurlError.Code
    ) async throws {
        let server = try ScriptedServer(script)
        let client = try Self.client(server)
        let request = try Self.request(server)
        for action in script {
            let failure = await Self.code(client, request)
            #expect(failure == (action == .ok ? nil : code))
        }
        let requests = try server.seen().filter { $0.hasPrefix("request") }
        #expect(
            requests.compactMap { $0.split(separator: " ").last.map(String.init) }
                == script.map(\.rawValue))
        #expect(client.stats.inFlight == 0)
    }

    @Test func `a silent peer is waited for until the deadline`() async throws {
        let server = try ScriptedServer([.ok, .silence, .ok])
        let client = try Self.client(server)
        _ = try await client.send(Self.request(server))
        let short = try Self.request(server, deadline: .milliseconds(200))
        // Again where it was not sent in time.
        try await eventually("sent and timed out") { await Self.code(client, short) == .timedOut }
        _ = try await client.send(Self.request(server))
    }

    @Test func `GOAWAY spares what it names, and fails what lies above`() async throws {
        let server = try ScriptedServer([.ok, .silence, .goAwayBefore, .ok])
        let client = try Self.client(server)
        let request = try Self.request(server)
        _ = try await client.send(request)
        async let named = client.send(request)
        while try !server.seen().contains("request 1 silence") {}
        let above = await Self.code(client, request)
        #expect(above == .notProcessed)
        #expect(try await named.status == 200)
        _ = try await client.send(request)
        #expect(try server.seen().suffix(1) == ["request 2 ok"])
    }

    /// In one record, so that libcurl receives everything at once.
    @Test(
        arguments: [ScriptedServer.Action.resetAndGoAway, .goAwayAndReset, .goAwayAndClose],
        [true, false])
    func `what a GOAWAY names may have been acted on, however the connection ends`(
        action: ScriptedServer.Action, isFirst: Bool
    ) async throws {
        let server = try ScriptedServer((isFirst ? [] : [.ok]) + [action, .ok])
        let client = try Self.client(server)
        let request = try Self.request(server)
        if !isFirst { _ = try await client.send(request) }
        let code = try #require(await Self.code(client, request))
        #expect([.streamReset, .connectionEnded].contains(code))
        _ = try await client.send(request)
    }

    @Test func `several streams that are reset as the connection ends may have been acted on`()
        async throws
    {
        let server = try ScriptedServer([.ok, .silence, .silence, .resetAllAndGoAway, .ok])
        let client = try Self.client(server)
        let request = try Self.request(server)
        _ = try await client.send(request)
        let codes = await withTaskGroup(of: CurlError.Code?.self) { group in
            for _ in 0..<3 { group.addTask { await Self.code(client, request) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(codes.count == 3)
        for code in codes {
            #expect(code == .streamReset || code == .connectionEnded, "\(codes)")
        }
        _ = try await client.send(request)
    }

    /// Returns a connection with one open stream that accepts no other.
    private func mute() async throws -> (
        ScriptedServer, CurlClient, Task<CurlError.Code?, any Error>
    ) {
        let server = try ScriptedServer([.ok, .goAwayAndSilence, .ok])
        let client = try Self.client(server)
        let request = try Self.request(server)
        _ = try await client.send(request)
        let silent = Task { await Self.code(client, request) as CurlError.Code? }
        // The client answers the PING behind the GOAWAY.
        while try !server.seen().contains("pong 1") {}
        return (server, client, Task { await silent.value })
    }

    @Test func `a request that waits for a connection has its deadline`() async throws {
        let (server, client, silent) = try await mute()
        let late = try Self.request(server, deadline: .milliseconds(300))
        #expect(await Self.code(client, late) == .notSent)
        #expect(client.stats.inFlight == 1)
        client.close()
        #expect(try await silent.value == .closed)
    }

    @Test func `after a GOAWAY the next request opens a connection`() async throws {
        let server = try ScriptedServer([.goAway, .ok])
        let client = try Self.client(server)
        for _ in 0..<2 { _ = try await client.send(Self.request(server)) }
        #expect(
            try server.seen().filter { $0.hasPrefix("request") } == [
                "request 1 goAway", "request 2 ok",
            ])
    }

    @Test func `a status counts, whatever follows it`() async throws {
        let server = try ScriptedServer([.statusThenReset])
        let answer = try await Self.client(server).send(Self.request(server))
        #expect(
            answer.status == 410 && answer.failure?.code == .streamReset
                && answer.head["apns-id"] == "id-410")
    }

    @Test func `no more of a body is kept than may be`() async throws {
        let server = try ScriptedServer([.big])
        let client = try Self.client(server)
        let cut = try await client.send(Self.request(server), bodyBytesMax: 1_000)
        #expect(cut.status == 200 && cut.body.count == 1_000 && cut.failure?.code == .tooLarge)
        let whole = try await client.send(Self.request(server), bodyBytesMax: 100_000)
        #expect(whole.body.count == 100_000 && whole.failure == nil)
    }

    // MARK: Connections

    @Test func `certificates are trusted as configured`() async throws {
        let server = try ScriptedServer([.ok])
        let request = try Self.request(server)
        for file in [nil, server.otherCertificate, "/nowhere"] {
            let client = try Self.client(server) { $0.trust = CurlTrust(file: file) }
            #expect(await Self.code(client, request) == .notTrusted)
            #expect(client.stats.connections == 0)
        }
    }

    @Test func `nobody there, and no such name`() async throws {
        let server = try ScriptedServer([.ok])
        let client = try Self.client(server)
        var request = try Self.request(server)
        request.origin = "https://127.0.0.1:1"
        #expect(await Self.code(client, request) == .unreachable)
        request.origin = "https://name.invalid"
        #expect(await Self.code(client, request) == .unresolved)
        #expect(client.stats.connections == 0)
    }

    @Test(arguments: ["http://localhost", "localhost", "https://local host", "", "ftp://localhost"])
    func `only https is spoken`(origin: String) async throws {
        let server = try ScriptedServer([.ok])
        var request = try Self.request(server)
        request.origin = origin
        let code = await Self.code(try Self.client(server), request)
        #expect(code == .badRequest)
    }

    private static func refusal(_ addresses: AddressGuard) -> @Sendable ([UInt8]) -> String? {
        { bytes in IPAddress(bytes: bytes).flatMap { addresses.refusal(of: $0)?.rawValue } }
    }

    @Test func `a guarded client connects to no address that is refused`() async throws {
        let server = try ScriptedServer([.ok])
        let request = try Self.request(server)
        let guarded = try Self.client(server) { $0.addressRefusal = Self.refusal(AddressGuard()) }
        #expect(await Self.code(guarded, request) == .addressNotAllowed)
        let range = try #require(AddressRange("127.0.0.0/8"))
        let allowing = try Self.client(server) {
            $0.addressRefusal = Self.refusal(AddressGuard(allowed: [range]))
        }
        #expect(await Self.code(allowing, request) == nil)
        #expect(try server.seen().filter { $0.hasPrefix("accepted") }.count == 1)
    }

    @Test func `an address that is given replaces the look-up and no check`() async throws {
        let server = try ScriptedServer([.ok], addresses: ["127.0.0.1", "127.0.0.2"])
        let client = try Self.client(server) {
            $0.connectionsPerHostMax = 2
            $0.connectionsMax = 2
        }
        var request = try Self.request(server)
        request.origin = "https://hooks.example.com:\(server.port)"
        for address in ["127.0.0.1", "127.0.0.2", "127.0.0.1"] {
            request.address = address
            #expect(await Self.code(client, request) == nil)
        }
        #expect(
            try server.seen().filter { $0.hasPrefix("accepted") }.sorted() == [
                "accepted 127.0.0.1", "accepted 127.0.0.2",
            ])
        request.origin = "https://elsewhere.example.com:\(server.port)"
        #expect(await Self.code(client, request) == .notTrusted)
    }

    // MARK: Concurrency

    @Test(arguments: [1, 3, 1_000])
    func `a peer's bound on streams is obeyed over one connection`(streamsMax: Int) async throws {
        let server = try ScriptedServer([.ok], streamsMax: streamsMax)
        let client = try Self.client(server)
        let request = try Self.request(server)
        _ = try await client.send(request)
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<60 { group.addTask { try await client.send(request).status } }
            for try await status in group { #expect(status == 200) }
        }
        #expect(try server.seen().filter { $0.hasPrefix("accepted") }.count == 1)
        #expect(client.stats.connections == 1)
    }

    @Test func `callers wait for room, as many as may`() async throws {
        let server = try ScriptedServer([.silence, .ok])
        let client = try Self.client(server) {
            $0.requestsMax = 1
            $0.waitingMax = 1
        }
        let request = try Self.request(server)
        let first = Task { try await client.send(request) }
        while try !server.seen().contains("request 1 silence") {}
        let second = Task { try await client.send(request).status }
        while client.stats.waiting == 0 { await Task.yield() }
        #expect(await Self.code(client, request) == .busy)
        first.cancel()
        #expect(try await second.value == 200)
        await #expect(throws: CurlError.self) { try await first.value }
        #expect(client.stats.inFlight == 0 && client.stats.handles == 1)
    }

    @Test func `cancelling ends a request wherever it is`() async throws {
        let server = try ScriptedServer([.silence])
        let client = try Self.client(server) { $0.requestsMax = 1 }
        let request = try Self.request(server)
        let first = Task { await Self.code(client, request) }
        while try !server.seen().contains("request 1 silence") {}
        let second = Task { await Self.code(client, request) }
        while client.stats.waiting == 0 { await Task.yield() }
        second.cancel()
        #expect(await second.value == .cancelled)
        let third = Task {
            while !Task.isCancelled { await Task.yield() }
            return await Self.code(client, request)
        }
        third.cancel()
        #expect(await third.value == .cancelled)
        #expect(client.stats.inFlight == 1 && client.stats.waiting == 0)
        first.cancel()
        #expect(await first.value == .cancelled)
        #expect(client.stats.inFlight == 0)
    }

    @Test func `draining lets end what is under way, and closing does not`() async throws {
        let server = try ScriptedServer([.silence])
        let client = try Self.client(server) { $0.requestsMax = 1 }
        let short = try Self.request(server, deadline: .milliseconds(300))
        let calls = (0..<2).map { _ in Task { await Self.code(client, short) } }
        while client.stats.waiting == 0 { await Task.yield() }
        await client.drain()
        for call in calls {
            let code = await call.value
            #expect(code == .timedOut || code == .notSent)
        }
        #expect(await Self.code(client, short) == .closed)
        #expect(client.stats == CurlClient.Stats())

        let other = try Self.client(server) { $0.requestsMax = 1 }
        let long = try Self.request(server)
        let ended = (0..<2).map { _ in Task { await Self.code(other, long) } }
        while other.stats.waiting == 0 { await Task.yield() }
        other.close()
        for call in ended { #expect(await call.value == .closed) }
        await other.drain()
        #expect(other.stats == CurlClient.Stats())
    }

    // MARK: Receivers

    /// Records each end of a request.
    final class Outcome: TransferReceiver {
        let codes = Mutex<[CurlError.Code?]>([])

        func received(_ head: CurlHead) {}
        func received(_ piece: UnsafeRawBufferPointer) -> Int? { piece.count }
        func ended(_ head: CurlHead?, _ failure: CurlError?) {
            codes.withLock { $0.append(head == nil ? failure?.code : nil) }
        }
    }

    /// Whatever a peer does, each request has one outcome. The peer sees at most the requests that
    /// were sent, and at least those that it may have acted on.
    @Test(arguments: [1, 2, 3, 4, 5, 6] as [UInt64])
    func `each request has one outcome and is sent once`(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let faults: [ScriptedServer.Action] = [
            .refuse, .reset, .close, .goAway, .goAwayBefore, .statusThenReset, .reason, .big,
        ]
        let script = (0..<300).map { index -> ScriptedServer.Action in
            index > 0 && random.happens(5) ? random.pick(faults) : .ok
        }
        let server = try ScriptedServer(script + [.ok], streamsMax: random.pick([1, 10, 1_000]))
        let client = try Self.client(server) {
            $0.requestsMax = 50
            $0.connectionsMax = 2
            $0.connectionsPerHostMax = 2
        }
        let request = try Self.request(server)
        let outcomes = (0..<300).map { _ in Outcome() }
        for outcome in outcomes { _ = client.start(request, receiver: outcome) }
        while client.stats.inFlight > 0 { await Task.yield() }
        await client.drain()
        let codes = outcomes.map { $0.codes.withLock { $0 } }
        #expect(codes.allSatisfy { $0.count == 1 })
        let allowed: Set<CurlError.Code?> = [
            nil, .notProcessed, .connectionEnded, .streamReset,
        ]
        #expect(codes.filter { !allowed.contains($0[0]) } == [])
        let seen = try server.seen().filter { $0.hasPrefix("request") }.count
        let answered = codes.filter { $0[0] == nil }.count
        #expect((answered...300).contains(seen))
        #expect(client.stats == CurlClient.Stats())
    }
}
