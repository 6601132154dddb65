import CatalogModel
import Testing
import WidgetModel

@testable import GatewayCore

let testHash = SipHash(0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908)

/// Returns a catalog of one app called `app`, with one intent `I` that has the parameters `a` and
/// `b`.
func catalog(
    _ widgets: [JSONValue], parameters: [JSONValue]? = nil, activities: [JSONValue] = []
) throws -> Catalog {
    let declared: [JSONValue] =
        parameters ?? [
            ["name": "a", "type": "String"], ["name": "b", "type": "String"],
            ["name": "list", "type": "[String]"],
        ]
    return try Catalog(
        [
            "app": "app", "entities": ["E": ["properties": ["p", "q"]], "F": [:]],
            "intents": ["I": ["parameters": .array(declared)]], "widgets": .array(widgets),
            "activities": .array(activities),
        ], app: "app", limits: Limits())
}

/// Returns the declaration of a type of Live Activities with the attributes `a` and `b`.
func activityDeclaration(
    _ rules: [JSONValue], type: String = "A", content: String = "https://content"
) -> JSONValue {
    [
        "type": .string(type), "attributes": ["a", "b"], "dependsOn": .array(rules),
        "content": ["url": .string(content)],
    ]
}

/// Returns the declaration of a kind that is configured with `I` and depends on `rules`.
func kind(
    _ rules: [JSONValue], named name: String = "k", collapse: Int64 = 0,
    recommendations: [JSONValue]? = nil
) -> JSONValue {
    var object: JSONObject = [
        "kind": .string(name), "configuration": "appIntent", "intent": "I",
        "collapse": .integer(collapse), "dependsOn": .array(rules),
    ]
    if let recommendations { object["recommendations"] = ["dependsOn": .array(recommendations)] }
    return .object(object)
}

func ruleSet(
    _ rules: [JSONValue], parameters: [JSONValue]? = nil, at sequence: UInt64 = 1,
    replacing previous: RuleSet? = nil
) throws -> RuleSet {
    RuleSet(
        try catalog([kind(rules)], parameters: parameters), sequence: sequence,
        replacing: previous, hash: testHash)
}

func widget(_ parameters: [String: ParameterValue] = [:], kind: String = "k") -> ConfiguredWidget {
    ConfiguredWidget(kind: kind, family: "systemSmall", parameters: parameters)
}

func client(
    _ widgets: [ConfiguredWidget], attributes: [String: [String]] = [:],
    recommendations: [RecommendationSet] = [], confirmed: [String: UInt64] = [:],
    name: String = "client", platform: String = "iOS", osVersion: OSVersion? = nil,
    activities: [RegisteredActivity] = []
) -> ClientRecord {
    ClientRecord(
        client: name,
        registration: ClientRegistration(
            platform: platform, osVersion: osVersion, attributes: attributes, widgets: widgets,
            recommendations: recommendations, activities: activities),
        attributes: ClientAttributes(own: attributes), confirmed: confirmed)
}

/// Whether a change hits a widget, decided as for versions: by the keys that both sides have.
func hits(
    _ ruleSet: RuleSet, _ change: Change, _ widget: ConfiguredWidget,
    attributes: [String: [String]] = [:]
) throws -> Bool {
    let raised = Set(try ruleSet.decide(change, limits: Limits()).keys.map(\.values.hash))
    return ruleSet.dependencies(of: client([widget], attributes: attributes)).contains {
        var isHit = false
        ruleSet.rules[$0.rule].visitHashes(reaching: $0.values) {
            if raised.contains($0) { isHit = true }
        }
        return isHit
    }
}

/// The smallest gateway: a shard with a log writer in front of it.
struct SmallGateway {
    var decider = Decider(hash: testHash, limits: Limits())
    var shard: Shard
    var head: UInt64 = 0
    var now: Int64 = 0

    init(_ catalog: Catalog, limits: CoreLimits = CoreLimits()) {
        shard = Shard(floor: 0, limits: limits)
        put(catalog)
    }

    mutating func put(_ catalog: Catalog) {
        head += 1
        apply(.catalog(decider.install(catalog, at: head)))
    }

    mutating func remove() {
        head += 1
        decider.remove(app: "app")
        apply(.removal)
    }

    mutating func change(_ change: Change) throws {
        head += 1
        apply(.change(try decider.decide(change, app: "app"), cause: ChangeCause(time: "t")))
    }

    mutating func reload(_ scope: ReloadScope) {
        head += 1
        apply(.reload(scope))
    }

    mutating func apply(_ body: LogEntry.Body) {
        shard.apply(LogEntry(sequence: head, app: "app", acceptedAt: 7, body: body), now: now)
    }

    mutating func open(
        _ record: ClientRecord, since point: ResumePoint, kinds: Set<String>? = nil
    ) throws -> StreamID {
        let id = shard.open(record, app: "app", since: point, kinds: kinds)
        return try #require(id)
    }

    /// Returns what was sent to a stream since the last call: the stale names as text, and the id
    /// where a frame carries one.
    func sent(_ id: StreamID) -> [String] {
        var result: [String] = []
        for (stream, first) in shard.output.touched where stream == id {
            var place = Int(first)
            while place >= 0 {
                let delivery = shard.output.deliveries[place]
                let frame = shard.output.frames[Int(delivery.frame)]
                result.append(
                    words(frame.content) + (delivery.id > 0 ? " id \(delivery.id)" : ""))
                place = Int(delivery.next)
            }
        }
        return result
    }

    /// Returns the same as `sent`, and ends the turn.
    mutating func taken(_ id: StreamID) -> [String] {
        let result = sent(id)
        shard.clearOutput()
        return result
    }
}

/// Returns a stale set as text, such as `k(a=1 b=null)`, `k.recommendations` or `all`.
func words(_ stale: StaleSet?) -> String {
    guard let stale else { return "nil" }
    if stale.all { return "all" }
    return stale.names.map { name in
        let target = name.target == .timeline ? "" : ".\(name.target)"
        let values = name.parameters.map { "\($0.name)=\($0.value ?? "null")" }
        return name.kind + target + (values.isEmpty ? "" : "(\(values.joined(separator: " ")))")
    }.joined(separator: ", ")
}

extension Rule {
    /// Returns the name of the key with these positions.
    func name(of positions: [BoundValues.Position]) -> InvalidationTarget {
        name(of: BoundValues(rule: self, positions: positions))
    }
}

extension RuleSet {
    /// Returns the dependencies of a client by rules in force, each once.
    func dependencies(of record: ClientRecord) -> [Dependency] {
        holdings(of: record, kinds: nil).dependencies.filter { $0.rule < rules.count }
    }
}
