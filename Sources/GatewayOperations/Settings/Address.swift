/// A host and a port.
package struct Address: Sendable, Equatable, CustomStringConvertible {
    /// A name or numeric address, without brackets.
    package let host: String
    /// The port; 0 lets the system choose.
    package let port: Int

    /// Reads `HOST:PORT`, `[::1]:PORT`.
    package init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":"),
            let port = Int(text[text.index(after: colon)...]),
            (0...65_535).contains(port)
        else { return nil }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        guard !host.isEmpty else { return nil }
        self.host = String(host)
        self.port = port
    }

    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// `HOST:PORT`.
    package var description: String {
        host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    /// Whether the address can be reached only from this machine.
    package var isLoopback: Bool {
        host == "localhost" || host == "::1" || host.hasPrefix("127.")
    }
}
