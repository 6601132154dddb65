/// An error as people and programs get it: `application/problem+json` (RFC 9457).
public struct ProblemDetails: Error, Sendable, Equatable {
    /// The media type of the JSON form.
    public static let mediaType = "application/problem+json"

    /// What every `type` URI starts with; the rest is the stable code.
    public static let typePrefix = "urn:timeline-gateway:problem:"

    /// The HTTP status.
    public var status: Int
    /// The stable code at the end of the `type` URI, such as `event-id-reused`.
    public var code: String
    /// The same sentence for every problem of one type.
    public var title: String
    /// What happened this time and what to do; no secrets, tokens or parameter values.
    public var detail: String?
    /// Every fault found, for a document that is well-formed but wrong.
    public var faults: [Fault]
    /// How many seconds to wait before the next try, where waiting helps.
    public var retryAfter: Int?
    /// The digest of the registration in force, where a client believes another one in force.
    public var digest: String?
    /// The limit that was exceeded, for the `RateLimit` fields.
    public var rateLimit: RateLimit?

    /// A limit of requests in a time window.
    public struct RateLimit: Sendable, Equatable {
        /// The name of the policy: plain letters.
        public var policy: String
        /// The requests that a window allows.
        public var quota: Int
        /// The window, in seconds.
        public var window: Int

        /// Creates the description of a limit.
        public init(policy: String, quota: Int, window: Int) {
            self.policy = policy
            self.quota = quota
            self.window = window
        }
    }

    /// A problem.
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

    /// Reads a problem someone else sent; members of a wrong type are ignored, as the RFC asks.
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
    /// For a terminal: title, detail, then one fault a line.
    public var description: String {
        var lines = ["\(status) \(title)"]
        if let detail { lines.append(detail) }
        lines += faults.map { "  \($0)" }
        return lines.joined(separator: "\n")
    }
}
