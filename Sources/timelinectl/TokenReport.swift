import Foundation
import GatewaySigning
import WidgetModel

/// The claims of a signed text and its validity; the signature is not shown.
struct TokenReport {
    /// The header; `nil` if it cannot be read.
    let header: JSONValue?
    /// The claims; `nil` if they cannot be read.
    let claims: JSONValue?
    /// Whether a key of the set signed it; `nil` if no keys were given.
    let isVerified: Bool?
    /// The reasons why it is invalid.
    let faults: [String]

    /// Inspects a compact JWS at `now`, in seconds since 1970. Without `keys` the signature is not
    /// verified.
    init(_ text: String, keys: JWKSet?, now: Int64) {
        var faults: [String] = []
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        let decoded = parts.prefix(2).map { part in
            Base64.url.decode(String(part)).flatMap { try? JSONValue(parsing: $0) }
        }
        header = decoded.first?.flatMap { $0.objectValue == nil ? nil : $0 }
        claims = decoded.dropFirst().first?.flatMap { $0.objectValue == nil ? nil : $0 }
        if header == nil || claims == nil || parts.count != 3 {
            faults.append("it is not a signed JWT in the compact form")
        }
        var isVerified: Bool?
        if let keys {
            do throws(TokenRejection) {
                let type = header?.objectValue?["typ"]?.stringValue
                _ = try JWS(parsing: Array(text.utf8), bytesMax: JWS.notificationBytesMax)
                    .verifiedPayload(
                        by: keys, as: type == JWSType.reloadName ? .reload : .token)
                isVerified = true
            } catch {
                isVerified = false
                let reason = Self.reason(error)
                if !faults.contains(reason) { faults.append(reason) }
            }
        }
        self.isVerified = isVerified
        self.faults = faults + Self.timeFaults(claims, now: now)
    }

    private static func timeFaults(_ claims: JSONValue?, now: Int64) -> [String] {
        guard let object = claims?.objectValue else { return [] }
        var faults: [String] = []
        switch object["exp"] {
        case .integer(let exp)? where exp <= now:
            faults.append("it expired on \(date(exp))")
        case .integer?: break
        default: faults.append("its exp is missing or not a whole number of seconds")
        }
        for name in ["nbf", "iat"] {
            if let from = object[name]?.integerValue, from > now {
                faults.append("it is not valid before \(date(from)) (\(name))")
            }
        }
        return faults
    }

    private static func reason(_ rejection: TokenRejection) -> String {
        switch rejection {
        case .tooLarge: "it is longer than \(JWS.notificationBytesMax) bytes"
        case .malformed: "it is not a signed JWT in the compact form"
        case .criticalHeader: "its header has crit, and no critical extension is supported"
        case .wrongType: "its typ is not that of a token or notification"
        case .unknownKey: "no key in the set has its kid"
        case .unusableKey: "the key that it names is of a kind that is not supported"
        case .wrongAlgorithm: "its alg does not match the key that its kid names"
        case .badSignature: "the signature does not verify"
        default: rejection.message
        }
    }

    private static func date(_ seconds: Int64) -> String {
        // Outside the range of a calendar, print the number.
        guard (0..<253_402_300_800).contains(seconds) else { return "second \(seconds)" }
        return Date(timeIntervalSince1970: TimeInterval(seconds)).ISO8601Format()
    }

    /// For people.
    var text: String {
        var lines: [String] = []
        if let header { lines.append("header \(header.indented())") }
        if let claims { lines.append("claims \(claims.indented())") }
        switch isVerified {
        case true?: lines.append("the signature verifies")
        case false?: break
        case nil: lines.append("the signature was not checked: no keys were given")
        }
        lines += faults.map { "DOES NOT HOLD: \($0)" }
        return lines.joined(separator: "\n")
    }

    /// For programs.
    var json: JSONValue {
        [
            "header": header ?? .null, "claims": claims ?? .null,
            "verified": isVerified.map { .bool($0) } ?? .null,
            "faults": .array(faults.map { .string($0) }),
        ]
    }
}
