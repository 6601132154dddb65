/// The claims of a reload notification: the stale kinds, optionally narrowed to parameter values,
/// the stale recommendation sets, and the stale Live Activities. It names stale content and never
/// carries data.
public struct ReloadNotification: Sendable, Hashable {
    /// The `typ` of the signed form, which distinguishes it from all other tokens.
    public static let typ = "timeline-reload+jwt"

    /// The stale timelines of one widget kind.
    public struct Reload: Sendable, Hashable {
        /// The widget kind.
        public var kind: String
        /// The parameter values that restrict it, sorted by name. A parameter that is not listed
        /// matches every value; `nil` is a parameter that the person left unset.
        public var parameters: [Parameter]

        /// Creates an entry for stale timelines of a kind.
        public init(kind: String, parameters: [Parameter] = []) {
            self.kind = kind
            self.parameters = parameters
        }
    }

    /// Stale Live Activities of one type.
    public struct Activity: Sendable, Hashable {
        /// The type of the activities.
        public var type: String
        /// The id of the only one that is stale; `nil` if more may be.
        public var id: String?
        /// The attribute values that restrict it, in the form of ``Reload/parameters``.
        public var attributes: [Parameter]

        /// Creates an entry for stale activities of a type.
        public init(type: String, id: String? = nil, attributes: [Parameter] = []) {
            self.type = type
            self.id = id
            self.attributes = attributes
        }
    }

    /// One parameter's value in a notification.
    public struct Parameter: Sendable, Hashable {
        /// The intent parameter's name.
        public var name: String
        /// The value as text; `nil` when it is unset.
        public var value: String?

        /// Creates a parameter with its value.
        public init(name: String, value: String?) {
            self.name = name
            self.value = value
        }

        /// Compares the values by the bytes of their text.
        public static func == (left: Self, right: Self) -> Bool {
            guard left.name == right.name else { return false }
            guard let own = left.value, let other = right.value else {
                return left.value == nil && right.value == nil
            }
            return own.hasSameBytes(as: other)
        }

        /// Hashes the name and the bytes of the value.
        public func hash(into hasher: inout Hasher) {
            hasher.combine(name)
            hasher.combine(value == nil)
            value?.hashBytes(into: &hasher)
        }
    }

    /// The gateway's URL (`iss`).
    public var issuer: String
    /// The app that it is for (`aud`).
    public var audience: String
    /// The time of signing, seconds since 1970 (`iat`).
    public var issuedAt: Int64
    /// The time at which it expires, seconds since 1970 (`exp`).
    public var expires: Int64
    /// The id, unique for each notification (`jti`).
    public var id: String
    /// The latest change that it reports. It never advances a cursor.
    public var sequence: UInt64
    /// The stale timelines.
    public var reload: [Reload]
    /// The kinds whose recommendation set is stale.
    public var recommendations: [String]
    /// The kinds whose relevance is stale.
    public var relevance: [String]
    /// The control kinds that are stale.
    public var controls: [String]
    /// The Live Activities that are stale.
    public var activities: [Activity]
    /// Whether everything of the client is stale; the lists are then empty.
    public var all: Bool
    /// The facts about the change; only if a single change is reported.
    public var cause: ChangeCause?

    /// Creates the claims of a notification.
    public init(
        issuer: String, audience: String, issuedAt: Int64, expires: Int64, id: String,
        sequence: UInt64, reload: [Reload] = [], recommendations: [String] = [],
        relevance: [String] = [], controls: [String] = [], activities: [Activity] = [],
        all: Bool = false, cause: ChangeCause? = nil
    ) {
        self.issuer = issuer
        self.audience = audience
        self.issuedAt = issuedAt
        self.expires = expires
        self.id = id
        self.sequence = sequence
        self.reload = reload
        self.recommendations = recommendations
        self.relevance = relevance
        self.controls = controls
        self.activities = activities
        self.all = all
        self.cause = cause
    }

    /// The claims as JSON; empty lists are omitted.
    public var json: JSONValue {
        var object: JSONObject = [
            "iss": .string(issuer), "aud": .string(audience), "iat": .integer(issuedAt),
            "exp": .integer(expires), "jti": .string(id),
            "seq": .integer(Int64(clamping: sequence)),
        ]
        if !reload.isEmpty { object["reload"] = .array(reload.map(\.json)) }
        for (name, kinds) in [
            ("recommendations", recommendations), ("relevance", relevance), ("controls", controls),
        ] where !kinds.isEmpty {
            object[name] = .array(kinds.map { .string($0) })
        }
        if !activities.isEmpty { object["activities"] = .array(activities.map(\.json)) }
        if all { object["all"] = true }
        if let cause { object["cause"] = cause.json }
        return .object(object)
    }

    /// Reads claims. Unknown claims are ignored.
    ///
    /// - Throws: ``Faults`` when a required claim is missing or of a wrong type.
    public init(_ value: JSONValue) throws(Faults) {
        var faults = Faults()
        guard var reader = MemberReader(value, at: "", &faults) else { throw faults }
        let textMax = 4096
        let issuer = reader.string("iss", required: true, limit: textMax, &faults)
        let audience = reader.string("aud", required: true, limit: textMax, &faults)
        let id = reader.string("jti", required: true, limit: textMax, &faults)
        func integer(_ name: String) -> Int64? {
            guard let value = reader.required(name, &faults) else { return nil }
            if value.integerValue == nil { faults.add(name, "must be an integer") }
            return value.integerValue
        }
        let issuedAt = integer("iat")
        let expires = integer("exp")
        let sequence = integer("seq").flatMap { UInt64(exactly: $0) }
        let listMax = 100_000
        let reload = (reader.array("reload", countMax: listMax, &faults) ?? []).enumerated()
            .compactMap { Reload($1, at: "reload[\($0)]", &faults) }
        func kinds(_ name: String) -> [String] {
            reader.strings(name, limit: textMax, countMax: listMax, &faults)
        }
        let (recommendations, relevance) = (kinds("recommendations"), kinds("relevance"))
        let controls = kinds("controls")
        let activities = (reader.array("activities", countMax: listMax, &faults) ?? [])
            .enumerated().compactMap { Activity($1, at: "activities[\($0)]", &faults) }
        let all = reader.value("all")?.boolValue ?? false
        let cause = ChangeCause(reader.value("cause"))
        guard faults.isEmpty, let issuer, let audience, let id, let issuedAt, let expires,
            let sequence
        else {
            if faults.isEmpty { faults.add("seq", "must not be negative") }
            throw faults
        }
        self.init(
            issuer: issuer, audience: audience, issuedAt: issuedAt, expires: expires, id: id,
            sequence: sequence, reload: reload, recommendations: recommendations,
            relevance: relevance, controls: controls, activities: activities, all: all,
            cause: cause)
    }
}

extension ReloadNotification {
    /// Returns whether it concerns a timeline. That of a relevance widget consists of its relevance,
    /// of which only the kind is named.
    package func concernsTimeline(
        ofKind kind: String, _ values: [String: ParameterValue]
    ) -> Bool {
        all || relevance.contains(kind)
            || reload.contains { $0.concerns(kind: kind, values: values) }
    }
}

extension ReloadNotification.Reload {
    var json: JSONValue {
        var object: JSONObject = ["kind": .string(kind)]
        if !parameters.isEmpty { object["parameters"] = parameters.json }
        return .object(object)
    }

    init?(_ value: JSONValue, at place: String, _ faults: inout Faults) {
        guard var reader = MemberReader(value, at: place, &faults),
            let kind = reader.string("kind", required: true, limit: 4096, &faults)
        else { return nil }
        self.init(kind: kind, parameters: .init(reader.value("parameters")))
    }

    /// Returns whether this concerns a widget of `kind` configured with `values`: every listed
    /// parameter must be among the widget's values, or unset if it is listed as unset.
    public func concerns(kind: String, values: [String: ParameterValue]) -> Bool {
        kind == self.kind
            && parameters.allSatisfy { parameter in
                let value = values[parameter.name] ?? .unset
                guard let named = parameter.value else { return value == .unset }
                return value.texts.contains(where: named.hasSameBytes)
            }
    }
}

extension ReloadNotification.Activity {
    var json: JSONValue {
        var object: JSONObject = ["type": .string(type)]
        if let id { object["id"] = .string(id) }
        if !attributes.isEmpty { object["attributes"] = attributes.json }
        return .object(object)
    }

    init?(_ value: JSONValue, at place: String, _ faults: inout Faults) {
        guard var reader = MemberReader(value, at: place, &faults),
            let type = reader.string("type", required: true, limit: 4096, &faults)
        else { return nil }
        let id = reader.string("id", limit: 4096, &faults)
        self.init(type: type, id: id, attributes: .init(reader.value("attributes")))
    }

    /// Returns whether this concerns an activity: it has the type, the id if one is named, and the
    /// listed attributes, compared as by ``ReloadNotification/Reload/concerns(kind:values:)``.
    public func concerns(
        type: String, id: String, attributes: [String: ParameterValue]
    ) -> Bool {
        (self.id ?? id) == id
            && ReloadNotification.Reload(kind: self.type, parameters: self.attributes)
                .concerns(kind: type, values: attributes)
    }
}

extension [ReloadNotification.Parameter] {
    fileprivate var json: JSONValue {
        var values = JSONObject()
        for parameter in self {
            values[parameter.name] = parameter.value.map { .string($0) } ?? .null
        }
        return .object(values)
    }

    /// Reads the members of an object.
    fileprivate init(_ value: JSONValue?) {
        self = (value?.objectValue?.members ?? []).compactMap { member in
            let text = ParameterValue.text(of: member.value)
            // Values that are neither scalars nor null are unknown here. Leaving them out
            // matches every value, so nothing is missed.
            guard text != nil || member.value == .null else { return nil }
            return ReloadNotification.Parameter(name: member.name, value: text)
        }
    }
}
