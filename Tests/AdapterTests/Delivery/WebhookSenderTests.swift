import CurlMulti
import Dispatch
import Foundation
import GatewayCore
import GatewaySigning
import GatewayTestSupport
import Synchronization
import Testing

@testable import GatewayDelivery

@Suite(.timeLimit(.minutes(30))) struct WebhookSenderTests {
    static let message = WebhookMessage(
        id: "msg_1", timestamp: 1_800_000_000, body: Array(#"{"cursor":"a"}"#.utf8))

    static func endpoint(_ server: ScriptedServer, host: String) throws -> WebhookEndpoint {
        try WebhookEndpoint("https://\(host):\(server.port)/hook?a=b")
    }

    static func sender(
        _ server: ScriptedServer, allowed: String, resolver: NameResolver
    ) throws -> WebhookSender {
        let range = try #require(AddressRange(allowed))
        return try WebhookSender(
            addressGuard: AddressGuard(allowed: [range]), resolver: resolver,
            trust: .file(server.certificate))
    }

    /// Returns a resolver that gives other addresses each time; the last ones are repeated.
    static func resolver(_ answers: [[String]?]) -> NameResolver {
        let left = Mutex(answers)
        return NameResolver { _ in
            let answer = left.withLock { $0.count > 1 ? $0.removeFirst() : $0.first ?? nil }
            return answer?.compactMap { IPAddress($0) }
        }
    }

    static func send(
        _ sender: WebhookSender, _ endpoint: WebhookEndpoint
    ) async throws -> Result<WebhookResponse, CurlError> {
        let signer = try WebhookSigner([SigningKey()])
        do throws(CurlError) {
            var response = try await sender.send(message, to: endpoint, signer: signer)
            #expect(response.isMultiplexed, "the server speaks HTTP/2")
            response.isMultiplexed = false
            return .success(response)
        } catch {
            return .failure(error)
        }
    }

    /// 127.0.0.1 stands for a public address, 127.0.0.2 for one of the gateway's own network; the
    /// same server listens on both.
    @Test func `a name that turns to a private address does not lead there`() async throws {
        let server = try ScriptedServer([.ok], addresses: ["127.0.0.1", "127.0.0.2"])
        let endpoint = try Self.endpoint(server, host: "hooks.example.com")
        let sender = try Self.sender(
            server, allowed: "127.0.0.1",
            resolver: Self.resolver([["127.0.0.1"], ["127.0.0.2"], ["::1", "10.0.0.1"]]))
        #expect(try await Self.send(sender, endpoint) == .success(.status(200)))
        for _ in 0..<2 {
            let refused = try await Self.send(sender, endpoint)
            #expect(refused.code == .addressNotAllowed)
        }
        let seen = try server.seen()
        #expect(seen.filter { $0.hasPrefix("accepted") } == ["accepted 127.0.0.1"])
        #expect(seen.filter { $0.hasPrefix("request") }.count == 1)
        await sender.drain()
    }

    @Test func `of several addresses those are tried that may be`() async throws {
        let server = try ScriptedServer([.ok], addresses: ["127.0.0.2", "127.0.0.3"])
        let endpoint = try Self.endpoint(server, host: "hooks.example.com")
        // Nothing listens on the first address, and the second is not permitted.
        let sender = try Self.sender(
            server, allowed: "127.0.0.1", resolver: Self.resolver([["127.0.0.1", "127.0.0.2"]]))
        #expect(try await Self.send(sender, endpoint).code == .unreachable)
        let other = try Self.sender(
            server, allowed: "127.0.0.0/8",
            resolver: Self.resolver([["10.0.0.1", "127.0.0.1", "127.0.0.3", "127.0.0.2"]]))
        #expect(try await Self.send(other, endpoint) == .success(.status(200)))
        #expect(try server.seen().filter { $0.hasPrefix("accepted") } == ["accepted 127.0.0.3"])
    }

    @Test(arguments: ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]"])
    func `an address in the URL is judged as well`(host: String) async throws {
        let server = try ScriptedServer([.ok])
        let endpoint = try Self.endpoint(server, host: host)
        let sender = try Self.sender(
            server, allowed: "127.0.0.9", resolver: Self.resolver([["127.0.0.9"]]))
        #expect(try await Self.send(sender, endpoint).code == .addressNotAllowed)
        #expect(try server.seen() == [])
    }

    @Test func `an address in the URL that is allowed is asked`() async throws {
        let server = try ScriptedServer([.ok])
        let endpoint = try Self.endpoint(server, host: "127.0.0.1")
        let sender = try Self.sender(
            server, allowed: "127.0.0.1", resolver: Self.resolver([nil]))
        #expect(try await Self.send(sender, endpoint) == .success(.status(200)))
    }

    @Test func `the certificate is that of the name`() async throws {
        let server = try ScriptedServer([.ok])
        let endpoint = try Self.endpoint(server, host: "elsewhere.example.com")
        let sender = try Self.sender(
            server, allowed: "127.0.0.1", resolver: Self.resolver([["127.0.0.1"]]))
        #expect(try await Self.send(sender, endpoint).code == .notTrusted)
    }

    @Test func `answers are what the schedule takes`() async throws {
        let server = try ScriptedServer([.busy, .redirect, .statusThenReset, .big, .close])
        let endpoint = try Self.endpoint(server, host: "hooks.example.com")
        let sender = try Self.sender(
            server, allowed: "127.0.0.1", resolver: Self.resolver([["127.0.0.1"]]))
        var answers: [WebhookResponse?] = []
        for _ in 0..<5 { answers.append(try? await Self.send(sender, endpoint).get()) }
        #expect(
            answers == [
                .status(429, retryAfter: 120), .status(302), .status(410), .status(200), nil,
            ])
    }

    @Test func `of the answer to a question no more is read than content may have`() async throws {
        let server = try ScriptedServer([.big, .busy, .redirect, .statusThenReset])
        let endpoint = try Self.endpoint(server, host: "hooks.example.com")
        let sender = try Self.sender(
            server, allowed: "127.0.0.1", resolver: Self.resolver([["127.0.0.1"]]))
        let signer = try WebhookSigner([SigningKey()])
        func ask() async throws(CurlError) -> WebhookSender.Answer {
            try await sender.ask(Self.message, to: endpoint, signer: signer)
        }
        let big = try await ask()
        #expect(big.status == 200 && big.body.count == 4_097 && big.failure != nil)
        let busy = try await ask()
        #expect(busy.status == 429 && busy.retryAfter == 120)
        #expect(busy.body == Array("later".utf8) && busy.failure == nil)
        #expect(try await ask().status == 302)
        let reset = try await ask()
        #expect(reset.status == 410 && reset.failure != nil && reset.retryAfter == nil)
        await sender.drain()
    }

    @Test func `a drain that is cancelled ends what is under way`() async throws {
        let server = try ScriptedServer([.silence])
        let endpoint = try Self.endpoint(server, host: "hooks.example.com")
        let sender = try Self.sender(
            server, allowed: "127.0.0.1", resolver: Self.resolver([["127.0.0.1"]]))
        let attempt = Task { try await Self.send(sender, endpoint).code }
        while try !server.seen().contains("request 1 silence") {}
        let drain = Task { await sender.drain() }
        drain.cancel()
        await drain.value
        #expect(try await attempt.value == .closed)
    }

    @Test func `the system resolves names, and gives up in time`() async {
        let resolver = NameResolver.system(deadline: Patience.duration)
        let found = await resolver.addresses("localhost")
        #expect(found?.contains(.v4(0x7F00_0001)) == true || found?.contains(.v6(1)) == true)
        #expect(await resolver.addresses("name.invalid") == nil)
        await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<50 {
                group.addTask { await resolver.addresses("localhost") != nil }
            }
            for await isFound in group { #expect(isFound) }
        }
        let hasty = NameResolver.system(lookUpsMax: 0, deadline: .milliseconds(10))
        #expect(await hasty.addresses("localhost") == nil)
        let full = NameResolver.system(lookUpsMax: 0, waitingMax: 0)
        #expect(await full.addresses("localhost") == nil)
    }

    @Test func `callers that gave up leave their places at a look-up to others`() async {
        let goesOn = DispatchSemaphore(value: 0)
        let deadline = Duration.milliseconds(20)
        let resolver = NameResolver.system(waitingMax: 2, deadline: deadline) { _ in
            goesOn.wait()
            return nil
        }
        for _ in 0..<6 {
            let began = ContinuousClock.now
            #expect(await resolver.addresses("a") == nil)
            // A refused caller does not wait.
            #expect(ContinuousClock.now - began >= deadline / 2)
        }
        goesOn.signal()
    }

    @Test func `the names of one owner do not hold up those of another`() async throws {
        let asked = Mutex(0)
        let goesOn = DispatchSemaphore(value: 0)
        let resolver = NameResolver.system(lookUpsMax: 2, deadline: Patience.duration) { name in
            guard name != "b" else { return [.v4(1)] }
            asked.withLock { $0 += 1 }
            goesOn.wait()
            return nil
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<10 {
                group.addTask { _ = await resolver.addresses("a\(number)", of: "A") }
            }
            try await eventually("all threads of A are busy") { asked.withLock { $0 } == 2 }
            #expect(await resolver.addresses("b", of: "B") == [.v4(1)])
            for _ in 0..<10 { goesOn.signal() }
        }
    }

    @Test func `callers of one name share its look-up`() async throws {
        let asked = Mutex<[String]>([])
        let goesOn = DispatchSemaphore(value: 0)
        let resolver = NameResolver.system(deadline: .milliseconds(10)) { name in
            asked.withLock { $0.append(name) }
            goesOn.wait()
            return [.v4(1)]
        }
        // Each waits until its deadline, so all of them ask while nothing is found.
        await withTaskGroup(of: Bool.self) { group in
            for number in 0..<40 {
                group.addTask { await resolver.addresses(number % 2 == 0 ? "a" : "b") == nil }
            }
            for await isLate in group { #expect(isLate) }
        }
        try await eventually("both names are asked for") { asked.withLock { $0.count } >= 2 }
        for _ in 0..<1_000 { goesOn.signal() }
        // The addresses are not cached: the name is looked up again.
        try await eventually("a is found") {
            let found = await resolver.addresses("a")
            return found == [.v4(1)] && asked.withLock { $0.count { $0 == "a" } } >= 2
        }
        #expect(asked.withLock { $0.count { $0 == "b" } } == 1)
    }
}

extension Result where Failure == CurlError {
    fileprivate var code: CurlError.Code? {
        if case .failure(let error) = self { error.code } else { nil }
    }
}
