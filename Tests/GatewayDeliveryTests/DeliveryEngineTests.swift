import Foundation
import GatewayCore
import GatewayTestSupport
import Synchronization
import Testing

@testable import GatewayDelivery

@Suite(.timeLimit(.minutes(2))) struct DeliveryEngineTests {
    static func engine(
        _ server: ScriptedServer, _ change: (inout DeliveryEngine.Configuration) -> Void = { _ in }
    ) throws -> DeliveryEngine {
        var configuration = DeliveryEngine.Configuration(name: "test")
        configuration.trust = .file(server.certificate)
        configuration.answerFields = ["apns-id", "retry-after"]
        change(&configuration)
        return try DeliveryEngine(configuration)
    }

    static func request(
        _ server: ScriptedServer, deadline: Duration = .seconds(60)
    ) throws -> DeliveryRequest {
        DeliveryRequest(
            origin: server.origin, target: "/3/device/00ff",
            fields: try DeliveryFields([("apns-topic", "com.example.game")]),
            body: Array(#"{"aps":{}}"#.utf8), deadline: deadline)
    }

    /// The code of what is thrown, if it is the engine's.
    static func code(
        _ engine: DeliveryEngine, _ request: DeliveryRequest
    ) async -> DeliveryError.Code? {
        do throws(DeliveryError) {
            _ = try await engine.send(request)
            return nil
        } catch {
            return error.code
        }
    }

    @Test func `nothing goes out unencrypted unless that is allowed`() async throws {
        let server = try ScriptedServer([.ok])
        var request = try Self.request(server)
        request.origin = "http://127.0.0.1:\(server.port)"
        #expect(await Self.code(try Self.engine(server), request) == .badRequest)
        #expect(try server.seen().isEmpty)
        // The server speaks TLS: what it is sent now it does not understand.
        let plain = try Self.engine(server) { $0.allowsPlainText = true }
        let code = await Self.code(plain, request)
        #expect(code != nil && code != .badRequest)
        #expect(try server.seen() == ["accepted 127.0.0.1"])
        request.origin = "file://localhost"
        #expect(await Self.code(plain, request) == .badRequest)
    }

    @Test func `an answer has its status, its fields and its body`() async throws {
        let server = try ScriptedServer([.ok, .reason, .busy, .redirect, .interim])
        let engine = try Self.engine(server)
        let request = try Self.request(server)
        let ok = try await engine.send(request)
        #expect(ok.status == 200 && ok.body == [] && ok.isWhole)
        #expect(ok.field(0) == "id-1" && ok.field(1) == nil && ok.field(7) == nil)
        let reason = try await engine.send(request)
        #expect(reason.status == 400 && reason.isWhole)
        #expect(String(decoding: reason.body, as: UTF8.self) == #"{"reason":"BadDeviceToken"}"#)
        let busy = try await engine.send(request)
        #expect(busy.status == 429 && busy.field(1) == "120")
        let redirect = try await engine.send(request)
        #expect(redirect.status == 302)
        let interim = try await engine.send(request)
        #expect(interim.status == 200 && interim.field(0) == "id-9")
        #expect(engine.figures.underWay == 0)
        #expect(engine.figures.connections == 1 && engine.figures.handles == 1)
        await engine.drain()
        #expect(engine.figures == DeliveryFigures())
    }

    // MARK: What goes wrong

    @Test(arguments: [
        ([ScriptedServer.Action.refuse, .ok], DeliveryError.Code.notProcessed),
        ([.ok, .refuse, .ok], .notProcessed),
        ([.close, .ok], .connectionEnded),
        ([.ok, .close, .ok], .connectionEnded),
        ([.reset, .ok], .streamReset),
        ([.ok, .reset, .ok], .streamReset),
    ])
    func `a request that fails is sent once, and the next one works`(
        script: [ScriptedServer.Action], code: DeliveryError.Code
    ) async throws {
        let server = try ScriptedServer(script)
        let engine = try Self.engine(server)
        let request = try Self.request(server)
        for action in script {
            let failure = await Self.code(engine, request)
            #expect(failure == (action == .ok ? nil : code))
        }
        let requests = try server.seen().filter { $0.hasPrefix("request") }
        #expect(
            requests.compactMap { $0.split(separator: " ").last.map(String.init) }
                == script.map(\.rawValue))
        #expect(engine.figures.underWay == 0)
    }

    @Test func `a silent peer is waited for until the deadline`() async throws {
        let server = try ScriptedServer([.ok, .silence, .ok])
        let engine = try Self.engine(server)
        _ = try await engine.send(Self.request(server))
        let short = try Self.request(server, deadline: .milliseconds(200))
        #expect(await Self.code(engine, short) == .timedOut)
        _ = try await engine.send(Self.request(server))
    }

    @Test func `GOAWAY spares what it names, and fails what lies above`() async throws {
        let server = try ScriptedServer([.ok, .silence, .goAwayBefore, .ok])
        let engine = try Self.engine(server)
        let request = try Self.request(server)
        _ = try await engine.send(request)
        async let named = engine.send(request)
        while try !server.seen().contains("request 1 silence") {}
        let above = await Self.code(engine, request)
        #expect(above == .notProcessed)
        #expect(try await named.status == 200)
        _ = try await engine.send(request)
        #expect(try server.seen().suffix(1) == ["request 2 ok"])
    }

    /// In one record, so that libcurl hears of all at once.
    @Test(
        arguments: [ScriptedServer.Action.resetAndGoAway, .goAwayAndReset, .goAwayAndClose],
        [true, false])
    func `what a GOAWAY names may have been acted on, however the connection ends`(
        action: ScriptedServer.Action, isFirst: Bool
    ) async throws {
        let server = try ScriptedServer((isFirst ? [] : [.ok]) + [action, .ok])
        let engine = try Self.engine(server)
        let request = try Self.request(server)
        if !isFirst { _ = try await engine.send(request) }
        let code = try #require(await Self.code(engine, request))
        #expect([.streamReset, .connectionEnded].contains(code))
        _ = try await engine.send(request)
    }

    @Test func `several streams that are reset as the connection ends may have been acted on`()
        async throws
    {
        let server = try ScriptedServer([.ok, .silence, .silence, .resetAllAndGoAway, .ok])
        let engine = try Self.engine(server)
        let request = try Self.request(server)
        _ = try await engine.send(request)
        let codes = await withTaskGroup(of: DeliveryError.Code?.self) { group in
            for _ in 0..<3 { group.addTask { await Self.code(engine, request) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(codes.count == 3)
        for code in codes {
            #expect(code == .streamReset || code == .connectionEnded, "\(codes)")
        }
        _ = try await engine.send(request)
    }

    /// A connection of which one stream is still open, and which takes no other.
    private func mute() async throws -> (
        ScriptedServer, DeliveryEngine, Task<DeliveryError.Code?, any Error>
    ) {
        let server = try ScriptedServer([.ok, .goAwayAndSilence, .ok])
        let engine = try Self.engine(server)
        let request = try Self.request(server)
        _ = try await engine.send(request)
        let silent = Task { await Self.code(engine, request) as DeliveryError.Code? }
        while try !server.seen().contains("request 1 goAwayAndSilence") {}
        // Until the client has heard of it.
        try await Task.sleep(for: .milliseconds(200))
        return (server, engine, Task { await silent.value })
    }

    @Test func `a request that waits for a connection has its deadline`() async throws {
        let (server, engine, silent) = try await mute()
        let late = try Self.request(server, deadline: .milliseconds(300))
        #expect(await Self.code(engine, late) == .notSent)
        #expect(engine.figures.underWay == 1)
        engine.close()
        #expect(try await silent.value == .closed)
    }

    @Test func `after a GOAWAY the next request opens a connection`() async throws {
        let server = try ScriptedServer([.goAway, .ok])
        let engine = try Self.engine(server)
        for _ in 0..<2 { _ = try await engine.send(Self.request(server)) }
        #expect(
            try server.seen().filter { $0.hasPrefix("request") } == [
                "request 1 goAway", "request 2 ok",
            ])
    }

    @Test func `a status counts, whatever follows it`() async throws {
        let server = try ScriptedServer([.statusThenReset])
        let answer = try await Self.engine(server).send(Self.request(server))
        #expect(answer.status == 410 && !answer.isWhole && answer.field(0) == "id-410")
    }

    @Test func `no more of a body is kept than may be`() async throws {
        let server = try ScriptedServer([.big])
        let engine = try Self.engine(server) { $0.bodyBytesMax = 1_000 }
        let cut = try await engine.send(Self.request(server))
        #expect(cut.status == 200 && cut.body.count == 1_000 && !cut.isWhole)
        let whole = try await Self.engine(server) { $0.bodyBytesMax = 100_000 }
            .send(Self.request(server))
        #expect(whole.body.count == 100_000 && whole.isWhole)
    }

    // MARK: Connections

    @Test func `certificates are trusted as configured`() async throws {
        let server = try ScriptedServer([.ok])
        let request = try Self.request(server)
        let pem = try Data(contentsOf: URL(filePath: server.certificate))
        _ = try await Self.engine(server) { $0.trust = .pem(Array(pem)) }.send(request)
        for trust in [
            DeliveryEngine.Configuration.Trust.system, .file(server.otherCertificate),
            .file("/nowhere"), .pem(Array("nothing".utf8)),
        ] {
            let engine = try Self.engine(server) { $0.trust = trust }
            #expect(await Self.code(engine, request) == .notTrusted)
            #expect(engine.figures.connections == 0)
        }
    }

    @Test func `a peer that asks for a certificate is shown one`() async throws {
        let server = try ScriptedServer([.ok], wantsCertificate: true)
        let request = try Self.request(server)
        func bytes(_ name: String) throws -> [UInt8] {
            Array(try Data(contentsOf: URL(filePath: server.directory + "/" + name)))
        }
        let identity = DeliveryEngine.Configuration.Identity(
            certificate: try bytes("ca.pem"), key: try bytes("ca.key"))
        _ = try await Self.engine(server) { $0.identity = identity }.send(request)
        #expect(await Self.code(try Self.engine(server), request) != nil)
    }

    @Test func `nobody there, and no such name`() async throws {
        let server = try ScriptedServer([.ok])
        let engine = try Self.engine(server)
        var request = try Self.request(server)
        request.origin = "https://127.0.0.1:1"
        #expect(await Self.code(engine, request) == .unreachable)
        request.origin = "https://name.invalid"
        #expect(await Self.code(engine, request) == .unresolved)
        #expect(engine.figures.connections == 0)
    }

    @Test(arguments: ["http://localhost", "localhost", "https://local host", "", "ftp://localhost"])
    func `only https is spoken`(origin: String) async throws {
        let server = try ScriptedServer([.ok])
        var request = try Self.request(server)
        request.origin = origin
        let code = await Self.code(try Self.engine(server), request)
        #expect(code == .badRequest)
    }

    @Test func `a guarded engine connects to no address that is refused`() async throws {
        let server = try ScriptedServer([.ok])
        let request = try Self.request(server)
        let guarded = try Self.engine(server) { $0.addressGuard = AddressGuard() }
        #expect(await Self.code(guarded, request) == .addressNotAllowed)
        let range = try #require(AddressRange("127.0.0.0/8"))
        let allowing = try Self.engine(server) {
            $0.addressGuard = AddressGuard(allowed: [range])
        }
        #expect(await Self.code(allowing, request) == nil)
        #expect(try server.seen().filter { $0.hasPrefix("accepted") }.count == 1)
    }

    @Test func `an address that is given replaces the look-up and no check`() async throws {
        let server = try ScriptedServer([.ok], addresses: ["127.0.0.1", "127.0.0.2"])
        let engine = try Self.engine(server) {
            $0.connectionsPerHostMax = 2
            $0.connectionsMax = 2
        }
        var request = try Self.request(server)
        request.origin = "https://hooks.example.com:\(server.port)"
        for address in ["127.0.0.1", "127.0.0.2", "127.0.0.1"] {
            request.address = IPAddress(address)
            #expect(await Self.code(engine, request) == nil)
        }
        #expect(
            try server.seen().filter { $0.hasPrefix("accepted") }.sorted() == [
                "accepted 127.0.0.1", "accepted 127.0.0.2",
            ])
        request.origin = "https://elsewhere.example.com:\(server.port)"
        #expect(await Self.code(engine, request) == .notTrusted)
    }

    // MARK: How many at once

    @Test(arguments: [1, 3, 1_000])
    func `a peer's bound on streams is obeyed over one connection`(streamsMax: Int) async throws {
        let server = try ScriptedServer([.ok], streamsMax: streamsMax)
        let engine = try Self.engine(server)
        let request = try Self.request(server)
        _ = try await engine.send(request)
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<60 { group.addTask { try await engine.send(request).status } }
            for try await status in group { #expect(status == 200) }
        }
        #expect(try server.seen().filter { $0.hasPrefix("accepted") }.count == 1)
        #expect(engine.figures.connections == 1)
    }

    @Test func `callers wait for room, as many as may`() async throws {
        let server = try ScriptedServer([.silence, .ok])
        let engine = try Self.engine(server) {
            $0.requestsMax = 1
            $0.waitingMax = 1
        }
        let request = try Self.request(server)
        let first = Task { try await engine.send(request) }
        while try !server.seen().contains("request 1 silence") {}
        #expect(!engine.submit(request, tag: 1, receiver: Tags()))
        let second = Task { try await engine.send(request).status }
        while engine.figures.waiting == 0 { await Task.yield() }
        #expect(await Self.code(engine, request) == .busy)
        first.cancel()
        #expect(try await second.value == 200)
        await #expect(throws: DeliveryError.self) { try await first.value }
        #expect(engine.figures.underWay == 0 && engine.figures.handles == 1)
    }

    @Test func `cancelling ends a request wherever it is`() async throws {
        let server = try ScriptedServer([.silence])
        let engine = try Self.engine(server) { $0.requestsMax = 1 }
        let request = try Self.request(server)
        let first = Task { await Self.code(engine, request) }
        while try !server.seen().contains("request 1 silence") {}
        let second = Task { await Self.code(engine, request) }
        while engine.figures.waiting == 0 { await Task.yield() }
        second.cancel()
        #expect(await second.value == .cancelled)
        let third = Task {
            while !Task.isCancelled { await Task.yield() }
            return await Self.code(engine, request)
        }
        third.cancel()
        #expect(await third.value == .cancelled)
        #expect(engine.figures.underWay == 1 && engine.figures.waiting == 0)
        first.cancel()
        #expect(await first.value == .cancelled)
        #expect(engine.figures.underWay == 0)
    }

    @Test func `draining lets end what is under way, and closing does not`() async throws {
        let server = try ScriptedServer([.silence])
        let engine = try Self.engine(server) { $0.requestsMax = 1 }
        let short = try Self.request(server, deadline: .milliseconds(300))
        let calls = (0..<2).map { _ in Task { await Self.code(engine, short) } }
        while engine.figures.waiting == 0 { await Task.yield() }
        await engine.drain()
        for call in calls { #expect(await call.value == .timedOut) }
        #expect(await Self.code(engine, short) == .closed)
        #expect(engine.figures == DeliveryFigures())

        let other = try Self.engine(server) { $0.requestsMax = 1 }
        let long = try Self.request(server)
        let ended = (0..<2).map { _ in Task { await Self.code(other, long) } }
        while other.figures.waiting == 0 { await Task.yield() }
        other.close()
        for call in ended { #expect(await call.value == .closed) }
        await other.drain()
        #expect(other.figures == DeliveryFigures())
    }

    // MARK: Receivers

    /// Counts what was received for each tag.
    final class Tags: DeliveryReceiver {
        let outcomes = Mutex<[UInt64: [DeliveryError.Code?]]>([:])

        func received(_ outcome: DeliveryOutcome, for tag: UInt64) {
            let code: DeliveryError.Code? =
                switch outcome {
                case .success: nil
                case .failure(let error): error.code
                }
            outcomes.withLock { $0[tag, default: []].append(code) }
        }

        var count: Int { outcomes.withLock { $0.count } }
    }

    /// Whatever a peer does, each request has one outcome, and what a peer saw is never more than
    /// what was sent, and never less than what may have been acted on.
    @Test(arguments: [1, 2, 3, 4, 5, 6] as [UInt64])
    func `each request has one outcome and is sent once`(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let faults: [ScriptedServer.Action] = [
            .refuse, .reset, .close, .goAway, .goAwayBefore, .statusThenReset, .reason, .big,
        ]
        let script = (0..<300).map { index -> ScriptedServer.Action in
            index > 0 && random.happens(5) ? random.pick(faults) : .ok
        }
        let server = try ScriptedServer(script + [.ok], streamsMax: random.pick([1, 10, 1_000]))
        let engine = try Self.engine(server) {
            $0.requestsMax = 50
            $0.connectionsMax = 2
            $0.connectionsPerHostMax = 2
        }
        let request = try Self.request(server, deadline: .seconds(10))
        let tags = Tags()
        var tag: UInt64 = 0
        while tag < 300 {
            if engine.submit(request, tag: tag, receiver: tags) {
                tag += 1
            } else {
                await Task.yield()
            }
        }
        while tags.count < 300 { await Task.yield() }
        let codes = tags.outcomes.withLock { $0.values.map { $0 } }
        #expect(codes.allSatisfy { $0.count == 1 })
        let allowed: Set<DeliveryError.Code?> = [
            nil, .notProcessed, .connectionEnded, .streamReset,
        ]
        #expect(codes.filter { !allowed.contains($0[0]) } == [])
        let seen = try server.seen().filter { $0.hasPrefix("request") }.count
        let answered = codes.filter { $0[0] == nil }.count
        #expect((answered...300).contains(seen))
        await engine.drain()
        #expect(engine.figures == DeliveryFigures())
    }
}
