import GatewayTestSupport

/// The probes of a gateway whose admin port is known.
struct Health {
    private let port: UInt16

    /// A port for a gateway that is about to start.
    init() throws { port = try GatewayProcess.freePort() }

    /// The value of `--admin`.
    var address: String { "127.0.0.1:\(port)" }

    /// The status of `/readyz`; 0 when there was no answer.
    var ready: Int { status("/readyz") }
    /// The status of `/livez`; 0 when there was no answer.
    var live: Int { status("/livez") }

    private func status(_ path: String) -> Int {
        let http = TestHTTP(url: "http://\(address)", ca: "", timeoutSeconds: 5)
        return (try? http.request("GET", path).status) ?? 0
    }
}
