import GatewayCore

/// Reads the `Forwarded` fields of a request (RFC 7239), which each proxy on its way appends to.
enum ForwardedField {
    /// The fields are not lists of pairs such as `for=192.0.2.1;proto=https`.
    struct Malformed: Error {}

    /// Reads the entries from the last one back, because a client can invent those before a trusted
    /// proxy's, and returns the first address of no trusted proxy. If there is none before a hidden
    /// entry (`unknown`, an obfuscated identifier, no `for`) or the beginning, it returns the
    /// address read last; `nil` if none was read.
    ///
    /// - Parameter isTrusted: Whether an address belongs to a trusted proxy.
    /// - Throws: ``Malformed`` if a field that has to be read has another form. A trusted proxy may
    ///   have appended its entry to a client's open quotation mark: nothing of the field is
    ///   reliable then.
    static func client(
        _ fields: [String], isTrusted: (IPAddress) -> Bool
    ) throws(Malformed) -> IPAddress? {
        var last: IPAddress?
        for field in fields.reversed() {
            for node in try nodes(in: field).reversed() {
                guard let address = try address(of: node) else { return last }
                last = address
                if !isTrusted(address) { return address }
            }
        }
        return last
    }

    /// Returns the value of `for` in each entry; `nil` for an entry without.
    private static func nodes(in field: String) throws(Malformed) -> [[UInt8]?] {
        var scanner = Scanner(rest: Array(field.utf8)[...])
        var nodes: [[UInt8]?] = []
        var node: [UInt8]?
        while true {
            scanner.skipSpace()
            if let name = scanner.token() {
                guard scanner.skip("="), let value = scanner.value() else { throw Malformed() }
                if name.map({ $0 | 0x20 }) == Array("for".utf8) {
                    guard node == nil else { throw Malformed() }
                    node = value
                }
                scanner.skipSpace()
                if scanner.skip(";") { continue }
                nodes.append(node)
                node = nil
            }
            // A list may have empty elements (RFC 9110 section 5.6.1.2).
            if scanner.rest.isEmpty { return nodes }
            guard scanner.skip(",") else { throw Malformed() }
        }
    }

    /// Returns the address of a node (RFC 7239 section 6); `nil` for a hidden one.
    private static func address(of node: [UInt8]?) throws(Malformed) -> IPAddress? {
        guard let node, let first = node.first else { return nil }
        if first == UInt8(ascii: "_") { return nil }
        if node.map({ $0 | 0x20 }).starts(with: "unknown".utf8) { return nil }
        var host = node[...]
        var port: ArraySlice<UInt8>?
        if first == UInt8(ascii: "[") {
            guard let end = node.firstIndex(of: UInt8(ascii: "]")) else { throw Malformed() }
            host = node[1..<end]
            let rest = node[(end + 1)...]
            guard rest.isEmpty || rest.first == UInt8(ascii: ":") else { throw Malformed() }
            if !rest.isEmpty { port = rest.dropFirst() }
        } else if let colon = node.firstIndex(of: UInt8(ascii: ":")) {
            (host, port) = (node[..<colon], node[(colon + 1)...])
        }
        if let port {
            guard !port.isEmpty, port.allSatisfy({ isTokenByte($0) }) else { throw Malformed() }
        }
        guard let address = IPAddress(String(decoding: host, as: UTF8.self)) else {
            throw Malformed()
        }
        if case .v4 = address, first == UInt8(ascii: "[") { throw Malformed() }
        return address
    }

    /// Whether a byte may be part of a token (RFC 9110 section 5.6.2).
    private static func isTokenByte(_ byte: UInt8) -> Bool { FirstRequest.isTokenByte(byte) }

    /// Reads the bytes of a field from its beginning.
    private struct Scanner {
        var rest: ArraySlice<UInt8>

        mutating func skipSpace() { rest = rest.drop { $0 == 0x20 || $0 == 0x09 } }

        mutating func skip(_ character: Unicode.Scalar) -> Bool {
            guard rest.first == UInt8(ascii: character) else { return false }
            rest = rest.dropFirst()
            return true
        }

        /// Reads a token; `nil` if none is next.
        mutating func token() -> ArraySlice<UInt8>? { read { isTokenByte($0) } }

        /// Reads a token or a quoted string. The characters of addresses are accepted without
        /// quotation marks, too: several proxies omit them.
        mutating func value() -> [UInt8]? {
            guard skip("\"") else {
                return read { isTokenByte($0) || ":[]".utf8.contains($0) }.map(Array.init)
            }
            var value: [UInt8] = []
            while let byte = rest.popFirst() {
                switch byte {
                case UInt8(ascii: "\""): return value
                case UInt8(ascii: "\\"):
                    guard let escaped = rest.popFirst() else { return nil }
                    value.append(escaped)
                default: value.append(byte)
                }
            }
            return nil
        }

        private mutating func read(_ isPart: (UInt8) -> Bool) -> ArraySlice<UInt8>? {
            let part = rest.prefix(while: isPart)
            rest = rest[part.endIndex...]
            return part.isEmpty ? nil : part
        }
    }
}
