extension GatewayProcess {
    /// Returns an address for the admin port of a daemon that is about to start.
    package static func freeAddress() throws -> String { "127.0.0.1:\(try freePort())" }

    /// A client of the admin port, whose address must have been chosen by the caller.
    package func adminHTTP(timeoutSeconds: Int = Int(Patience.seconds)) -> TestHTTP {
        TestHTTP(url: "http://\(admin)", ca: ca, timeoutSeconds: timeoutSeconds)
    }

    /// Reads the metrics page.
    package func metrics() throws -> MetricsPage {
        MetricsPage(try adminHTTP().request("GET", "/metrics").text)
    }

    /// Returns the status of a probe such as `/readyz`; 0 when there was no answer.
    package func status(of path: String) -> Int {
        (try? adminHTTP(timeoutSeconds: 5).request("GET", path).status) ?? 0
    }
}
