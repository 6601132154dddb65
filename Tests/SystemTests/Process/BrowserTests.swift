import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// Streams that a browser opens: by a ticket in their URL, from the pages of other origins.
@Suite(.alone) struct BrowserTests {
    private static let page = "https://shop.example"
    private static let path = "/v1/apps/\(GameFixture.app)/clients/phone"

    private let clock = HeldClock()
    private let gateway: LocalGateway
    private let game: GameFixture
    private let phone: GameFixture.Client

    init() throws {
        gateway = try LocalGateway(
            environment: ["TIMELINE_GATEWAY_CORS_ORIGINS": Self.page], clock: clock)
        game = try GameFixture(gateway)
        phone = try game.client("phone", ["panda"])
    }

    private func order(
        _ token: String? = nil, _ headers: [(String, String)] = []
    ) throws -> TestHTTPAnswer {
        try gateway.http().request(
            "POST", Self.path + "/tickets", token: token ?? phone.token, headers: headers)
    }

    private func ticket() throws -> String {
        let answer = try order()
        try #require(answer.status == 201, "\(answer.text)")
        #expect(answer.header("cache-control") == "no-store")
        return try #require(answer["ticket"]?.stringValue)
    }

    private func stream(
        _ ticket: String, of client: String = "phone", version: TestHTTPVersion = .one
    ) -> TestHTTPStream {
        TestHTTPStream(
            url: gateway.url, ca: gateway.ca,
            path: "/v1/apps/\(GameFixture.app)/clients/\(client)/reloads?ticket=\(ticket)"
                + "&since=\(phone.cursor)", token: nil, version: version,
            headers: [("Origin", Self.page)])
    }

    /// Expects that a stream is answered with a problem.
    private func expect(_ status: Int, _ code: String, of stream: TestHTTPStream) throws {
        let head = try #require(stream.head())
        #expect(head.status == status)
        #expect(head.header("access-control-allow-origin") == Self.page)
        #expect(stream.waitForEnd())
        let line = gateway.standardErrorTail.split(separator: "\n").last { $0.contains(code) }
        #expect(line != nil, "\(gateway.standardErrorTail)")
    }

    @Test(arguments: [TestHTTPVersion.one, .two])
    func `a ticket opens one stream, from its cursor, for a page`(version: TestHTTPVersion) throws {
        let ticket = try ticket()
        let stream = stream(ticket, version: version)
        defer { stream.close() }
        let head = try #require(stream.head())
        #expect(head.status == 200 && head.header("timeline-cursor") == phone.cursor)
        #expect(head.header("access-control-allow-origin") == Self.page)
        #expect(head.header("vary") == "Origin")
        let exposed = head.header("access-control-expose-headers") ?? ""
        #expect(exposed.contains("Retry-After") && exposed.contains("Timeline-Cursor"))
        #expect(head.header("access-control-allow-credentials") == nil)
        let sequence = try game.change(gateway.http(), ["panda"], run: "one")
        clock.advance(to: clock.now + 1_000)
        _ = try stream.cursor(covering: sequence)
        try expect(401, "ticket-invalid", of: self.stream(ticket, version: version))
        #expect(!gateway.standardErrorTail.contains(ticket))
    }

    @Test func `a ticket is good for 30 s, to the millisecond`() throws {
        let (used, late) = (try ticket(), try ticket())
        clock.advance(to: clock.now + 29_999)
        let stream = stream(used)
        defer { stream.close() }
        #expect(stream.head()?.status == 200)
        clock.advance(to: clock.now + 1)
        try expect(401, "ticket-invalid", of: self.stream(late))
    }

    @Test func `a ticket with one letter changed opens nothing, and uses nothing up`() throws {
        let ticket = try ticket()
        let altered = (ticket.hasPrefix("A") ? "B" : "A") + ticket.dropFirst()
        try expect(401, "ticket-invalid", of: self.stream(altered))
        let stream = stream(ticket)
        defer { stream.close() }
        #expect(stream.head()?.status == 200)
    }

    @Test func `a ticket is no more than its token`() throws {
        _ = try game.client("tablet", ["panda"])
        let other = stream(try ticket(), of: "tablet")
        #expect(other.head()?.status == 403)
        // A poll can send the token itself.
        let unused = try ticket()
        let poll = try gateway.http().request("GET", Self.path + "/reloads?ticket=\(unused)")
        #expect(poll.status == 401 && poll.text.contains("token-missing"), "\(poll.text)")
        let malformed = try gateway.http().request(
            "GET", Self.path + "/reloads?ticket=\(unused)&since=%ff",
            headers: [("Accept", "text/event-stream")])
        #expect(malformed.status == 400, "\(malformed.text)")
        #expect(try order(game.backend).text.contains("insufficient-scope"))
        let stranger = try gateway.token(app: GameFixture.app, scope: "client", sub: "tablet")
        #expect(try order(stranger).text.contains("wrong-client"))
    }

    @Test func `what would refuse the stream refuses the ticket`() throws {
        let mismatch = try order(nil, [("Timeline-Registration", "another")])
        #expect(mismatch.status == 409 && mismatch.header("timeline-registration") != nil)
        let ticket = try ticket()
        let removed = try gateway.http().request("DELETE", Self.path, token: game.backend)
        #expect(removed.status == 204)
        #expect(try order().status == 404)
        // The reason is the stream's own, although its ticket is used up.
        #expect(stream(ticket).head()?.status == 404)
    }

    @Test func `tickets of one client have a rate, and so have tickets that nobody has`() throws {
        for _ in 0..<60 { _ = try ticket() }
        let refused = try order()
        #expect(refused.status == 429)
        #expect(refused.header("ratelimit-policy") == "\"tickets\";q=60;w=60")
        #expect(refused.header("retry-after") == "1")
        clock.advance(to: clock.now + 1_000)
        _ = try ticket()
        let http = gateway.http()
        var statuses: Set<Int> = []
        for number in 0..<2_100 {
            let answer = try http.request(
                "GET", Self.path + "/reloads?ticket=\(number)",
                headers: [("Accept", "text/event-stream")])
            statuses.insert(answer.status)
        }
        #expect(statuses == [401, 429])
        // Neither count shuts out the other kind.
        #expect(try http.request("GET", Self.path, token: "unknown").status == 401)
        #expect(try http.request("GET", Self.path, token: phone.token).status == 200)
    }

    // MARK: Pages

    @Test func `a page may send what a client sends, without a token for the question`() throws {
        func ask(_ path: String, origin: String) throws -> TestHTTPAnswer {
            try gateway.http().request(
                "OPTIONS", path,
                headers: [
                    ("Origin", origin), ("Access-Control-Request-Method", "POST"),
                    ("Access-Control-Request-Headers", "authorization"),
                ])
        }
        let answer = try ask(Self.path + "/tickets", origin: Self.page)
        #expect(answer.status == 204)
        #expect(answer.header("access-control-allow-origin") == Self.page)
        #expect(answer.header("access-control-allow-methods") == "OPTIONS, POST")
        #expect(
            answer.header("access-control-allow-headers")?.contains("Authorization") == true)
        #expect(answer.header("vary") == "Origin")
        for origin in ["https://shop.example.evil.test", "http://shop.example", "null"] {
            let refused = try ask(Self.path + "/tickets", origin: origin)
            #expect(refused.header("access-control-allow-origin") == nil, "\(origin)")
            #expect(refused.header("vary") == "Origin")
        }
        // Backends and operators have no pages.
        let catalog = try ask("/v1/apps/\(GameFixture.app)/catalog", origin: Self.page)
        #expect(catalog.header("access-control-allow-origin") == nil)
    }

    @Test func `every answer on the routes of clients says for whom it is`() throws {
        let http = gateway.http()
        let keys = try http.request(
            "GET", "/.well-known/jwks.json", headers: [("Origin", Self.page)])
        // They are for everybody, and so is what a cache has kept of them.
        #expect(keys.header("access-control-allow-origin") == "*")
        #expect(keys.header("access-control-expose-headers")?.contains("Date") == true)
        #expect(keys.header("vary") == nil)
        let asked: [(path: String, token: String?)] = [
            (Self.path, nil), (Self.path + "/reloads", phone.token),
        ]
        for (path, token) in asked {
            let answer = try http.request("GET", path, token: token)
            #expect(answer.header("vary") == "Origin")
            #expect(answer.header("access-control-allow-origin") == nil)
        }
        // The way of a stream without a page, and of one with it.
        let own = game.stream(phone)
        defer { own.close() }
        #expect(own.head()?.header("vary") == "Origin")
        let alone = try LocalGateway()
        let silent = try alone.http().request(
            "GET", "/.well-known/jwks.json", headers: [("Origin", Self.page)])
        #expect(silent.header("vary") == nil)
        #expect(silent.header("access-control-allow-origin") == nil)
    }
}
