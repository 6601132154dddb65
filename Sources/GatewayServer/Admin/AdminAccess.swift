/// Decides from a request's head alone whether it may read and act on the admin port.
///
/// On loopback everyone who can open a connection may read. That must not include every web page
/// that a person on this machine has open: a page can make a browser send requests here, and can
/// also read the responses under a name of its own that resolves to 127.0.0.1 (DNS rebinding). So
/// the request must address the port by a name of this machine, and a browser's request must come
/// from the dashboard itself.
package struct AdminAccess: Sendable {
    /// The relevant properties of a request.
    struct Request: Sendable {
        var method: String
        /// The path without the query.
        var path: String
        /// The `Host`, or the authority of the target.
        var host: String?
        var origin: String?
        /// `Sec-Fetch-Site` (W3C Fetch Metadata, section 2.2).
        var site: String?
        var hasAuthorization: Bool
    }

    /// The permissions of a request.
    enum Verdict: Sendable, Equatable {
        /// Anyone may send it.
        case open
        /// It may read as an operator of every app, without a token.
        case reader
        /// It has the rights of its token, which must be an operator's.
        case operators
        /// It is rejected, with this reason.
        case refused(String)
    }

    /// Whether only this machine can reach the port.
    let isLoopback: Bool

    private static let probes: Set<String> = ["/livez", "/readyz"]

    /// Judges a request.
    ///
    /// - Parameter isStatic: Whether the request is for a file of the dashboard, which contains no
    ///   information about the gateway: a browser needs it before it can ask for a token.
    func judge(_ look: Request, isStatic: Bool) -> Verdict {
        let reads = look.method == "GET" || look.method == "HEAD"
        if reads, Self.probes.contains(look.path) { return .open }
        if isLoopback, !(look.host.map(Self.isLoopback(authority:)) ?? false) {
            return .refused(
                "The Host of this port must be localhost or 127.0.0.1.")
        }
        if reads, isStatic { return .open }
        if let origin = look.origin, !Self.isSame(origin, look.host) {
            return .refused("Pages of other origins may not use this port.")
        }
        if let site = look.site, site != "same-origin", site != "none" {
            return .refused("Pages of other sites may not use this port.")
        }
        return isLoopback && reads && !look.hasAuthorization ? .reader : .operators
    }

    /// Whether an origin (RFC 6454) has the host and port of the request.
    private static func isSame(_ origin: String, _ host: String?) -> Bool {
        guard let host, let mark = origin.firstRange(of: "://") else { return false }
        return origin[mark.upperBound...].lowercased() == host.lowercased()
    }

    /// Whether an authority, with or without a port, names this machine.
    private static func isLoopback(authority: String) -> Bool {
        let host: Substring
        if authority.hasPrefix("[") {
            guard let end = authority.firstIndex(of: "]") else { return false }
            let rest = authority[authority.index(after: end)...]
            guard rest.isEmpty || rest.hasPrefix(":") else { return false }
            host = authority[authority.index(after: authority.startIndex)..<end]
        } else {
            host = authority.prefix { $0 != ":" }
        }
        if host == "::1" || host.lowercased() == "localhost" { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127"
            && parts.allSatisfy { UInt8($0) != nil && $0.allSatisfy(\.isNumber) }
    }
}
