import Testing

@testable import GatewayEngine
@testable import GatewayServer

@Suite struct AdminAccessTests {
    private func look(
        _ method: String = "GET", _ path: String = "/api/overview",
        host: String? = "localhost:9464",
        origin: String? = nil, site: String? = nil, token: Bool = false
    ) -> AdminAccess.Request {
        AdminAccess.Request(
            method: method, path: path, host: host, origin: origin, site: site,
            hasAuthorization: token)
    }

    private func isRefused(_ verdict: AdminAccess.Verdict) -> Bool {
        if case .refused = verdict { true } else { false }
    }

    private let loopback = AdminAccess(isLoopback: true)
    private let reachable = AdminAccess(isLoopback: false)

    @Test func `on loopback everybody reads, and operators alone act`() {
        #expect(loopback.judge(look(), isStatic: false) == .reader)
        #expect(loopback.judge(look("HEAD"), isStatic: false) == .reader)
        for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "get"] {
            #expect(loopback.judge(look(method), isStatic: false) == .operators)
            #expect(loopback.judge(look(method), isStatic: true) == .operators)
        }
        #expect(loopback.judge(look(token: true), isStatic: false) == .operators)
    }

    @Test
    func `where others reach the port, operators alone read, but for probes and the page itself`() {
        #expect(reachable.judge(look(host: "gateway.example"), isStatic: false) == .operators)
        #expect(reachable.judge(look("GET", "/metrics"), isStatic: false) == .operators)
        #expect(reachable.judge(look("GET", "/"), isStatic: true) == .open)
        for path in ["/livez", "/readyz"] {
            #expect(reachable.judge(look("GET", path, host: "10.0.0.1"), isStatic: false) == .open)
            #expect(loopback.judge(look("GET", path, host: "10.0.0.1"), isStatic: false) == .open)
            #expect(reachable.judge(look("POST", path), isStatic: false) == .operators)
        }
    }

    @Test(arguments: [
        "localhost", "localhost:9464", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:9464", "127.8.9.10:1",
        "[::1]", "[::1]:9464",
    ])
    func `names of this machine are taken`(host: String) {
        #expect(loopback.judge(look(host: host), isStatic: false) == .reader)
    }

    /// DNS rebinding: a name of the attacker that resolves to 127.0.0.1 (CWE-350).
    @Test(arguments: [
        nil, "", "attacker.example", "attacker.example:9464", "localhost.attacker.example",
        "127.0.0.1.attacker.example", "127.attacker.example", "127.0.0.1x", "127.0.0",
        "127.0.0.256",
        "127.0.0.+1", "128.0.0.1", "[::2]:9464", "[::1", "[::1]x", "0.0.0.0:9464",
        "localhost@attacker.example",
    ])
    func `other names are refused, whatever is asked for`(host: String?) {
        #expect(isRefused(loopback.judge(look(host: host), isStatic: false)))
        #expect(isRefused(loopback.judge(look(host: host), isStatic: true)))
        #expect(isRefused(loopback.judge(look("POST", host: host, token: true), isStatic: false)))
    }

    /// Cross-site request forgery (CWE-352); it would also let another site read.
    @Test(arguments: [
        "https://attacker.example", "http://localhost:3000", "null", "localhost:9464", "",
    ])
    func `other origins are refused`(origin: String) {
        for access in [loopback, reachable] {
            #expect(isRefused(access.judge(look(origin: origin), isStatic: false)))
            #expect(
                isRefused(access.judge(look("POST", origin: origin, token: true), isStatic: false)))
        }
        let own = look("POST", origin: "http://localhost:9464", site: "same-origin", token: true)
        #expect(loopback.judge(own, isStatic: false) == .operators)
    }

    @Test
    func `what another site's page asks for is refused, and following a link to the page is not`() {
        for site in ["cross-site", "same-site", "something"] {
            #expect(isRefused(loopback.judge(look(site: site), isStatic: false)))
            #expect(loopback.judge(look("GET", "/", site: site), isStatic: true) == .open)
        }
        for site in ["same-origin", "none"] {
            #expect(loopback.judge(look(site: site), isStatic: false) == .reader)
        }
    }
}
