import WidgetModel

/// The URL of a webhook in an unambiguous form, so that every later parser finds the same host.
package struct WebhookEndpoint: Sendable, Hashable {
    package enum Fault: Error, Sendable, Hashable {
        /// The URL is longer than ``lengthMax`` bytes.
        case tooLong
        /// The URL contains a space, a control character or a character outside ASCII.
        case character
        /// The URL does not begin with `https://`.
        case scheme
        /// The URL contains a user name or password.
        case userInformation
        /// The host is neither a name, an IPv4 address, nor an IPv6 address in brackets.
        case host
        /// The port is not in 1...65535.
        case port
        /// The URL contains a fragment, which is never sent.
        case fragment
    }

    /// The longest URL, bytes.
    package static let lengthMax = 2048

    /// The complete URL.
    package let url: String
    /// The host name or address, in lower case and without brackets.
    package let host: String
    /// The IP address, if the host is one.
    package let address: IPAddress?
    package let port: UInt16
    /// The part before ``target``: `https://`, the host and the port.
    package let origin: String
    /// The path and query, beginning with a slash.
    package let target: String

    package init(_ url: String) throws(Fault) {
        guard url.utf8.count <= Self.lengthMax else { throw .tooLong }
        // Some parsers treat a backslash as the end of the host, others do not.
        let isPlain = url.utf8.allSatisfy {
            (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\\")
        }
        guard isPlain else { throw .character }
        let scheme = "https://"
        guard url.lowercased().hasPrefix(scheme) else { throw .scheme }
        guard !url.utf8.contains(UInt8(ascii: "#")) else { throw .fragment }
        let rest = url.dropFirst(scheme.count)
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        guard !authority.contains("@") else { throw .userInformation }
        let name: Substring
        let after: Substring
        if authority.hasPrefix("[") {
            guard let end = authority.firstIndex(of: "]") else { throw .host }
            name = authority[..<end].dropFirst()
            after = authority[end...].dropFirst()
            guard case .v6? = IPAddress(name) else { throw .host }
        } else {
            name = authority.prefix { $0 != ":" }
            after = authority.dropFirst(name.count)
            guard Self.isName(name) else { throw .host }
        }
        if after.isEmpty {
            port = 443
        } else {
            let digits = after.dropFirst()
            guard after.first == ":", (1...5).contains(digits.count),
                digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                let number = UInt16(digits), number > 0
            else { throw .port }
            port = number
        }
        self.url = url
        origin = scheme + authority
        let path = rest.dropFirst(authority.count)
        target = path.first == "/" ? String(path) : "/" + path
        host = name.lowercased()
        address = IPAddress(host)
    }

    /// Returns whether the text consists of labels of letters, digits, hyphens and underscores (RFC
    /// 1123 section 2.1), or is an IPv4 address. Rejects a name that ends in a number, because
    /// `inet_aton` would parse it as an address.
    private static func isName(_ text: Substring) -> Bool {
        guard (1...253).contains(text.utf8.count) else { return false }
        if IPAddress(text) != nil { return true }
        let labels = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        let isSound = labels.allSatisfy { label in
            (1...63).contains(label.count)
                && label.allSatisfy { $0.isLetterOrDigit || "-_".utf8.contains($0) }
        }
        guard isSound, let last = labels.last else { return false }
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        return !last.allSatisfy(digits.contains)
            && !String(decoding: last, as: UTF8.self).lowercased().hasPrefix("0x")
    }
}
