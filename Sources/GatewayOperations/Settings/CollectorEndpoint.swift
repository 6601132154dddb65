package struct CollectorEndpoint: Sendable, Hashable {
    /// Scheme, host and port.
    package let origin: String
    /// The path for traces, beginning with a slash.
    package let target: String
    /// Whether traffic is unencrypted.
    package let isPlain: Bool
    package let isLoopback: Bool

    /// The path of OTLP/HTTP for traces, relative to that of the endpoint.
    private static let path = "/v1/traces"
    /// The maximum length of an endpoint, in bytes.
    private static let bytesMax = 2_048

    /// Reads `http://HOST:PORT` or `https://HOST:PORT`, with an optional path: the base of the
    /// paths for all signals, as in `OTEL_EXPORTER_OTLP_ENDPOINT`. `nil` for anything else,
    /// including user names and queries.
    package init?(_ text: String) {
        guard text.utf8.count <= Self.bytesMax,
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }),
            !text.contains(where: { "@?#\\\"<>".contains($0) })
        else { return nil }
        let scheme = text.prefix { $0 != ":" }.lowercased()
        let rest = text.dropFirst(scheme.utf8.count)
        guard scheme == "http" || scheme == "https", rest.hasPrefix("://") else { return nil }
        let authority = rest.dropFirst(3).prefix { $0 != "/" }
        guard let host = Self.host(authority) else { return nil }
        var path = rest.dropFirst(3 + authority.count)
        while path.hasSuffix("/") { path.removeLast() }
        origin = "\(scheme)://\(authority)"
        target = path + Self.path
        isPlain = scheme == "http"
        isLoopback = Address(host: host, port: 0).isLoopback
    }

    /// The host of `HOST`, `HOST:PORT`, `[ADDRESS]` or `[ADDRESS]:PORT`.
    private static func host(_ authority: Substring) -> String? {
        let isBracketed = authority.hasPrefix("[")
        let named = isBracketed ? authority.dropFirst() : authority
        let host = named.prefix { $0 != (isBracketed ? "]" : ":") }
        let rest = named.dropFirst(host.count + (isBracketed ? 1 : 0))
        let hasPort = rest.first == ":" && Int(rest.dropFirst()).map((1...65_535).contains) ?? false
        guard !host.isEmpty, !host.contains(where: { "[]".contains($0) }),
            // A missing closing bracket makes the address invalid.
            !isBracketed || named.count > host.count, rest.isEmpty || hasPort
        else { return nil }
        return String(host)
    }
}
