/// An error in a response, for people and programs: `application/problem+json` (RFC 9457).
public struct ProblemDetails: Error, Sendable, Equatable {
    /// The media type of the JSON form.
    public static let mediaType = "application/problem+json"

    /// The prefix of every `type` URI; the stable code follows it.
    public static let typePrefix = "urn:timeline-gateway:problem:"

    /// The HTTP status.
    public var status: Int
    /// The stable code at the end of the `type` URI, such as `event-id-reused`.
    public var code: String
    /// The title, which is the same for every problem of a type.
    public var title: String
    /// The particular cause and its remedy; without secrets, tokens or parameter values.
    public var detail: String?
    /// All faults of a well-formed but invalid document.
    public var faults: [Fault]
    /// The seconds to wait before a retry, if waiting helps.
    public var retryAfter: Int?
    /// The digest of the registration in force, if the client expected a different one.
    public var digest: String?
    /// The limit that was exceeded, for the `RateLimit` fields.
    public var rateLimit: RateLimit?

    /// A limit of requests in a time window.
    public struct RateLimit: Sendable, Equatable {
        /// The name of the policy, in plain letters.
        public var policy: String
        /// The number of requests allowed in a window.
        public var quota: Int
        /// The length of the window, seconds.
        public var window: Int

        /// Creates the description of a limit.
        public init(policy: String, quota: Int, window: Int) {
            self.policy = policy
            self.quota = quota
            self.window = window
        }
    }

    /// Creates a problem.
    public init(
        status: Int, code: String, title: String, detail: String? = nil, faults: [Fault] = [],
        retryAfter: Int? = nil, digest: String? = nil
    ) {
        self.status = status
        self.code = code
        self.title = title
        self.detail = detail
        self.faults = faults
        self.retryAfter = retryAfter
        self.digest = digest
    }

    /// The problem as JSON.
    public var json: JSONValue {
        var object: JSONObject = [
            "type": .string(Self.typePrefix + code), "title": .string(title),
            "status": .integer(Int64(status)),
        ]
        if let detail { object["detail"] = .string(detail) }
        if !faults.isEmpty { object["faults"] = .array(faults.map(\.json)) }
        if let retryAfter { object["retryAfter"] = .integer(Int64(retryAfter)) }
        if let digest { object["digest"] = .string(digest) }
        return .object(object)
    }

    /// Reads a problem from another program. Ignores members of a wrong type, as the RFC requires.
    public init?(_ value: JSONValue, status: Int) {
        guard let object = value.objectValue else { return nil }
        let type = object["type"]?.stringValue ?? "about:blank"
        let code =
            type.hasPrefix(Self.typePrefix) ? String(type.dropFirst(Self.typePrefix.count)) : type
        let faults = (object["faults"]?.arrayValue ?? []).compactMap { element -> Fault? in
            guard let object = element.objectValue, let message = object["message"]?.stringValue
            else { return nil }
            return Fault(object["place"]?.stringValue ?? "", message)
        }
        self.init(
            status: status, code: code, title: object["title"]?.stringValue ?? code,
            detail: object["detail"]?.stringValue, faults: faults,
            retryAfter: object["retryAfter"]?.integerValue.flatMap { Int(exactly: $0) },
            digest: object["digest"]?.stringValue)
    }
}

extension ProblemDetails: CustomStringConvertible {
    /// The problem as text for a terminal: title, detail, then one fault per line.
    public var description: String {
        var lines = ["\(status) \(title)"]
        if let detail { lines.append(detail) }
        lines += faults.map { "  \($0)" }
        return lines.joined(separator: "\n")
    }
}
