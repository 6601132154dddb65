import Testing

@testable import GatewayCore

@Suite struct APNsEnvironmentChoiceTests {
    @Test(arguments: APNsEnvironment.allCases)
    func `the other environment is tried once`(stated: APNsEnvironment) {
        var choice = APNsEnvironmentChoice(stated: stated)
        #expect(choice.current == stated && choice.mayTryOther)
        choice.swap()
        #expect(choice.current == stated.other && !choice.mayTryOther)
        choice.swap()
        #expect(choice.current == stated.other)
    }

    @Test func `what worked stays`() {
        for swaps in [false, true] {
            var choice = APNsEnvironmentChoice(stated: .production)
            if swaps { choice.swap() }
            let current = choice.current
            choice.worked(in: current)
            choice.swap()
            #expect(choice.current == current && !choice.mayTryOther)
        }
    }

    @Test func `a push still under way in the one stated proves it`() {
        var choice = APNsEnvironmentChoice(stated: .production)
        choice.swap()
        choice.worked(in: .production)
        #expect(choice.current == .production && choice.standing == .proven)
    }

    @Test func `it survives being persisted`() {
        var choice = APNsEnvironmentChoice(stated: .sandbox)
        choice.swap()
        let read = APNsEnvironmentChoice(
            current: APNsEnvironment(rawValue: choice.current.rawValue) ?? .sandbox,
            standing: .init(rawValue: choice.standing.rawValue) ?? .stated)
        #expect(read == choice)
    }
}

@Suite struct WebhookEndpointTests {
    typealias Fault = WebhookEndpoint.Fault

    @Test(arguments: [
        ("https://hooks.example.com/a?b=c", "hooks.example.com", 443, "/a?b=c"),
        ("HTTPS://Hooks.Example.COM", "hooks.example.com", 443, "/"),
        ("https://example.com:8443", "example.com", 8443, "/"),
        ("https://example.com?x=1", "example.com", 443, "/?x=1"),
        ("https://127.0.0.1:1/", "127.0.0.1", 1, "/"),
        ("https://[2001:DB8::1]:65535/x", "2001:db8::1", 65_535, "/x"),
        ("https://xn--mnchen-3ya.example/a@b", "xn--mnchen-3ya.example", 443, "/a@b"),
        ("https://a_b.example", "a_b.example", 443, "/"),
        ("https://localhost/", "localhost", 443, "/"),
    ])
    func `a URL is read`(url: String, host: String, port: UInt16, target: String) throws {
        let endpoint = try WebhookEndpoint(url)
        #expect(endpoint.host == host && endpoint.port == port && endpoint.target == target)
        #expect(endpoint.address == IPAddress(host))
        #expect(
            (endpoint.origin + endpoint.target).lowercased().hasPrefix(
                url.lowercased().prefix(while: { $0 != "?" })))
    }

    @Test(arguments: [
        ("http://example.com", Fault.scheme), ("example.com", .scheme), ("", .scheme),
        ("https:/example.com", .scheme), ("https://", .host), ("https:///path", .host),
        ("https://user@example.com", .userInformation),
        ("https://user:password@example.com/", .userInformation),
        ("https://example.com#fragment", .fragment), ("https://example.com/ a", .character),
        ("https://exa\nmple.com", .character), ("https://münchen.example", .character),
        ("https://example.com\\@evil.example", .character), ("https://example.com:0", .port),
        ("https://example.com:", .port), ("https://example.com:65536", .port),
        ("https://example.com:+1", .port), ("https://example.com:8443x", .port),
        ("https://[::1", .host), ("https://[127.0.0.1]", .host), ("https://[::1]x", .port),
        ("https://[fe80::1%25eth0]", .host), ("https://a..b", .host), ("https://.a", .host),
        ("https://a.", .host), ("https://127.1", .host), ("https://2130706433", .host),
        ("https://0x7f000001", .host), ("https://0x7f.0.0.0x1", .host),
        ("https://127.0.0.01", .host), ("https://1.2.3.256", .host),
        ("https://ex%61mple.com", .host),
        ("https://a,b", .host), ("https://" + String(repeating: "a", count: 64), .host),
        ("https://a/" + String(repeating: "a", count: 2_048), .tooLong),
    ])
    func `what leaves anything open is refused`(url: String, fault: Fault) {
        #expect(throws: fault) { try WebhookEndpoint(url) }
    }

    @Test(arguments: [
        ("0", 0), ("120", 120), ("86400", 86_400), ("86401", 86_400),
        ("99999999999999999999999", 86_400), ("Thu, 01 Jan 1970 00:33:20 GMT", 1_000),
        ("Thu, 01 Jan 1970 00:16:40 GMT", 0), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Fri, 01 Jan 2100 00:00:00 GMT", 86_400), ("Thu Jan  1 00:33:20 1970", 1_000),
        ("", nil), ("-1", nil), ("+1", nil), ("1.5", nil), ("soon", nil), ("１", nil),
    ])
    func `Retry-After is seconds or a date, within bounds`(field: String, seconds: Int64?) {
        #expect(RetryAfter.seconds(field, now: 1_000) == seconds)
    }
}

/// The URLs of webhooks that can never be requested.
@Suite struct WebhookObjectionTests {
    private let addressGuard = AddressGuard(allowed: [AddressRange("10.0.0.0/8")].compactMap { $0 })

    private func message(_ url: String) -> String? {
        WebhookObjection(to: url, by: addressGuard)?.message()
    }

    @Test(arguments: [
        "https://hooks.example.com/a?b=c", "https://localhost", "https://93.184.215.14:8443/",
        "https://10.1.2.3/hook", "https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/",
    ])
    func `a URL that may be requested has no objection`(url: String) {
        #expect(message(url) == nil)
    }

    @Test(arguments: [
        ("https://user:password@example.com/", "user name"), ("https://example.com/#a", "fragment"),
        ("https:///p", "host"), ("https://2130706433", "host"), ("https://example.com:0", "port"),
        ("https://exa mple.com", "space"), ("ftp://example.com", "https URL"),
        ("https://" + String(repeating: "a", count: 2_050), "2048"),
        ("https://127.0.0.1/", "127.0.0.1, which is not allowed: loopback"),
        ("https://169.254.169.254/", "metadata"), ("https://[::ffff:192.168.0.1]/", "private-use"),
        ("https://[::1]:8443", "loopback"),
    ])
    func `a URL that cannot be requested is told why`(url: String, reason: String) {
        #expect(message(url)?.contains(reason) == true, "\(message(url) ?? "-")")
    }
}
