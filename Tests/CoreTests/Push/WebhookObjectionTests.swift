import Testing

@testable import GatewayCore

/// The URLs of webhooks that can never be requested.
@Suite struct WebhookObjectionTests {
    private let addressGuard = AddressGuard(allowed: [AddressRange("10.0.0.0/8")].compactMap { $0 })

    private func message(_ url: String) -> String? {
        WebhookObjection(to: url, by: addressGuard)?.message
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
