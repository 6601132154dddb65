/// The header field `Cache-Control` (RFC 9111 section 5.2).
package enum CacheControl {
    /// Returns how long a response is fresh, in seconds; 0 if it must not be stored or used without
    /// asking again, `nil` if it does not say.
    package static func maxAge(_ text: String) -> Int64? {
        var age: Int64?
        for directive in text.split(separator: ",") {
            let parts = directive.split(separator: "=", maxSplits: 1).map {
                $0.filter { $0 != " " && $0 != "\t" && $0 != "\"" }.lowercased()
            }
            switch parts.first {
            case "no-store", "no-cache": return 0
            // A number too large to be represented counts as a long time (section 1.2.2).
            case "max-age" where parts.count == 2 && !parts[1].isEmpty:
                guard parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { continue }
                age = Int64(parts[1]) ?? .max
            default: continue
            }
        }
        return age
    }
}
