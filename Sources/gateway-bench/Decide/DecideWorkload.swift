import CatalogModel
import GatewayCore
import WidgetModel

/// The app of `decide`: kinds, clients and changes, the same for
/// the same numbers.
struct DecideWorkload {
    /// Streams that depend on one key.
    private static let keyHolders = 10
    static let clientWidgets = 4
    static let app = "com.example.bench"

    /// Configured widgets in all; as many for each key, and for each client.
    let widgets: Int
    /// Widget kinds, two for each entity.
    let kinds: Int

    private let keys: Int
    private var random = SplitMix64(seed: 0x5EED)

    /// A workload of about so many widgets of so many kinds.
    init(widgets: Int, kinds: Int) {
        self.kinds = max(4, kinds & ~3)
        let unit = Self.keyHolders * self.kinds
        self.widgets = max(1, widgets / unit) * unit
        keys = self.widgets / Self.keyHolders
    }

    var clients: Int { widgets / Self.clientWidgets }

    /// Every kind depends on one of the items of its entity; every fourth on the tenant as well,
    /// and every second holds changes back for 200 ms.
    func catalog() -> Catalog {
        var entities = JSONObject()
        for entity in 0..<kinds / 2 {
            entities["Entity\(entity)"] = ["properties": ["level", "name", "avatar"]]
        }
        let declared = (0..<kinds).map { kind -> JSONValue in
            var match: JSONObject = ["id": "$item"]
            if kind % 4 == 3 { match["tenant"] = "$client.tenant" }
            return [
                "kind": .string(Self.name(ofKind: kind)), "configuration": "appIntent",
                "intent": "SelectItem", "collapse": .integer(kind % 4 < 2 ? 0 : 200),
                "dependsOn": [
                    [
                        "entity": .string("Entity\(kind / 2)"), "match": .object(match),
                        "properties": [kind % 2 == 0 ? "level" : "avatar", "name"],
                    ]
                ],
            ]
        }
        let document: JSONValue = [
            "app": .string(Self.app), "entities": .object(entities),
            "intents": ["SelectItem": ["parameters": [["name": "item", "type": "String"]]]],
            "widgets": .array(declared),
        ]
        guard let catalog = try? Catalog(document, app: Self.app, limits: .none) else {
            fatalError("the catalog of the benchmark is wrong")
        }
        return catalog
    }

    private static func name(ofKind kind: Int) -> String { "com.example.widgets.kind-\(kind)" }

    /// A client: its strings are its own, as those of a document that was read are.
    func client(_ index: Int) -> ClientRecord {
        let widgets = (0..<Self.clientWidgets).map { place -> ConfiguredWidget in
            let key = spread(index * Self.clientWidgets + place, over: self.widgets) % keys
            return ConfiguredWidget(
                kind: Self.name(ofKind: key % kinds), family: "systemSmall",
                parameters: ["item": .single("item-\(key / kinds)")])
        }
        let attributes = ["tenant": ["blue"]]
        return ClientRecord(
            client: "installation-\(String(UInt64(index) &* 0x9E37_79B9_7F4A_7C15, radix: 16))",
            registration: ClientRegistration(
                platform: "iOS", attributes: attributes, widgets: widgets),
            attributes: ClientAttributes(own: attributes))
    }

    /// The next change. Keys are hit by Zipf's law: the nth as often as 1/n.
    mutating func nextChange() -> Change {
        let rank = zipf(UInt64(keys), random.next())
        let key = spread(rank, over: keys)
        let choice = random.next() % 10
        return Change(
            entity: "Entity\(key % kinds / 2)", id: "item-\(key / kinds)",
            properties: [choice < 4 ? "level" : choice < 8 ? "avatar" : "name"],
            attributes: ["tenant": ["blue"]])
    }

    /// A number below `count` of its own for each `index` below it.
    private func spread(_ index: Int, over count: Int) -> Int {
        // A prime that no count of the benchmark is a multiple of.
        Int(truncatingIfNeeded: UInt64(index) &* 2_147_483_647 % UInt64(count))
    }

    /// A rank below `count` whose logarithm is even, which makes Zipf's law with exponent one:
    /// first the power of two, as often as all others, then the place within it.
    private func zipf(_ count: UInt64, _ random: UInt64) -> Int {
        let powers = UInt64(UInt64.bitWidth - count.leadingZeroBitCount)
        let power = (random >> 48) % powers
        let rank = (1 << power) + (random & 0xFFFF_FFFF) % (1 << power) - 1
        return Int(truncatingIfNeeded: rank % count)
    }
}
