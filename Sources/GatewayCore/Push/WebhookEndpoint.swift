/// The URL of a webhook, in the one form that leaves nothing to interpretation: whatever reads it
/// after this finds the same host.
package struct WebhookEndpoint: Sendable, Hashable {
    /// What is wrong with a text.
    package enum Fault: Error, Sendable, Hashable {
        /// It is longer than ``lengthMax`` bytes.
        case tooLong
        /// A space, a control character or one beyond ASCII.
        case character
        /// It does not begin with `https://`.
        case scheme
        /// A user or password.
        case userInformation
        /// Neither a name, an address of version 4, nor one of version 6 in brackets.
        case host
        /// No port, 1...65535.
        case port
        /// A fragment, which is never sent.
        case fragment
    }

    /// The longest URL, in bytes.
    package static let lengthMax = 2048

    /// The URL.
    package let url: String
    /// The name or address it names, in lower case and without brackets.
    package let host: String
    /// The address, when it names one.
    package let address: IPAddress?
    /// The port.
    package let port: UInt16
    /// `https://`, the host and the port: what comes before ``target``.
    package let origin: String
    /// Path and query, beginning with a slash.
    package let target: String

    /// Reads a URL.
    package init(_ url: String) throws(Fault) {
        guard url.utf8.count <= Self.lengthMax else { throw .tooLong }
        // A backslash divides host from path for some readers, and for others it does not.
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

    /// Labels of letters, digits, hyphens and underscores (RFC 1123 section 2.1), or an address of
    /// version 4. What ends in a number and is none is what `inet_aton` takes for one.
    private static func isName(_ text: Substring) -> Bool {
        guard (1...253).contains(text.utf8.count) else { return false }
        if IPAddress(text) != nil { return true }
        let labels = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        let isSound = labels.allSatisfy { label in
            (1...63).contains(label.count)
                && label.allSatisfy { byte in
                    switch byte {
                    case UInt8(ascii: "a")...UInt8(ascii: "z"),
                        UInt8(ascii: "A")...UInt8(ascii: "Z"),
                        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
                        UInt8(ascii: "_"):
                        true
                    default: false
                    }
                }
        }
        guard isSound, let last = labels.last else { return false }
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        return !last.allSatisfy(digits.contains)
            && !String(decoding: last, as: UTF8.self).lowercased().hasPrefix("0x")
    }
}
