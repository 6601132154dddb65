/// Documents at the limits that the gateway has without configuration.
enum AttackDocuments {
    static let registrationBytesMax = 256 * 1024
    static let catalogBytesMax = 1024 * 1024
    static let postBytesMax = 8 * 1024 * 1024
    static let eventBytesMax = 64 * 1024
    static let startBytesMax = 3 * 1024
    static let stringBytesMax = 256
    static let listValuesMax = 64
    private static let (kinds, kindRules, widgets, attributes) = (500, 32, 200, 32)
    private static let mark = AttackRequest.numberMark

    /// Names as alike as those of one app are.
    private static func kind(_ number: Int) -> String { "widget-kind-number-\(padded(number, 3))" }

    private static func padded(_ number: Int, _ digits: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, digits - text.count)) + text
    }

    // MARK: Catalogs

    /// A catalog of 500 kinds where a change of `Hot` raises 10,000 keys, one of `Wide` with 64 values
    /// 9,750, and one of `Warm` 200; of 1 MiB, mostly white space.
    static func catalog(app: String) -> [UInt8] {
        var widgets: [String] = []
        for number in 0..<kinds {
            // 300 x 16 and 200 x 1 rules about Hot, each for a value and for an unset parameter.
            let hot = (0..<(number < 300 ? 16 : 1)).map {
                #"{"entity":"Hot","match":{"a\#($0)":"$p\#($0)"}}"#
            }
            let warm = (0..<(number < 50 ? 2 : 0)).map {
                #"{"entity":"Warm","match":{"w\#($0)":"$p\#($0)"}}"#
            }
            let wide =
                (50..<200).contains(number)
                ? [#"{"entity":"Wide","match":{"wide":"$p0"}}"#] : []
            let rules = (hot + warm + wide).joined(separator: ",")
            widgets.append(
                #"{"kind":"\#(kind(number))","configuration":"appIntent","intent":"All","#
                    + #""families":["systemSmall"],"dependsOn":[\#(rules)]}"#)
        }
        let parameters = (0..<16).map { #"{"name":"p\#($0)","type":"String"}"# }
        let text =
            #"{"app":"\#(app)","entities":{"Hot":{},"Warm":{},"Wide":{}},"#
            + #""intents":{"All":{"parameters":[\#(parameters.joined(separator: ","))]}},"#
            + #""widgets":[\#(widgets.joined(separator: ","))]}"#
        return filled(text, to: catalogBytesMax)
    }

    /// A catalog of 500 kinds with 64 rules each, by YAML aliases; rules of another `variant` are
    /// other rules.
    static func mostRules(app: String, variant: String) -> [UInt8] {
        let rules = (0..<kindRules).map { number in
            "{entity: \(variant)\(number % 8), match: {a\(number): $p\(number)}}"
        }.joined(separator: ", ")
        let entities = (0..<8).map { "\(variant)\($0): {}" }.joined(separator: ", ")
        let parameters = (0..<kindRules).map { "{name: p\($0), type: String}" }
            .joined(separator: ", ")
        let widgets = (0..<kinds).map { number in
            let dependsOn = number == 0 ? "&rules [\(rules)]" : "*rules"
            let recommendations = number == 0 ? "&more {dependsOn: *rules}" : "*more"
            return """
                - kind: \(kind(number))
                  configuration: appIntent
                  intent: All
                  families: [systemSmall]
                  dependsOn: \(dependsOn)
                  recommendations: \(recommendations)

                """
        }.joined()
        return Array(
            """
            app: \(app)
            entities: {\(entities)}
            intents: {All: {parameters: [\(parameters)]}}
            widgets:
            \(widgets)
            """.utf8)
    }

    /// A catalog of 500 entities, and of 500 kinds with 32 rules each about entities that are called
    /// nearly so.
    static func unknownEntities(app: String) -> [UInt8] {
        let entities = (0..<kinds).map { "EntityOfAnApp\(padded($0, 3)): {}" }
            .joined(separator: ", ")
        let rules = (0..<kindRules).map { "{entity: EntityOfAnApp\(padded($0 * 7, 3))x}" }
            .joined(separator: ", ")
        let widgets = (0..<kinds).map { number in
            let dependsOn = number == 0 ? "&rules [\(rules)]" : "*rules"
            return "- {kind: k\(number), configuration: static, families: [systemSmall],"
                + " dependsOn: \(dependsOn)}\n"
        }.joined()
        return Array("app: \(app)\nentities: {\(entities)}\nwidgets:\n\(widgets)".utf8)
    }

    /// A YAML text of 1 MiB of aliases.
    static var aliases: [UInt8] {
        let start = Array("[*".utf8)
        let pairs = (catalogBytesMax - start.count) / 2
        return start + [[UInt8]](repeating: Array(",*".utf8), count: pairs).flatMap { $0 }
    }

    // MARK: Registrations

    /// A registration of 256 KiB: 200 widgets and 200 controls. If `isUnknown`, their kinds are not
    /// in the catalog, but similar to its kinds.
    static func registration(isUnknown: Bool = false) -> [UInt8] {
        // Of the kinds with one rule: a client may depend on 1,000 keys.
        func name(_ number: Int) -> String { kind(300 + number) + (isUnknown ? "x" : "") }
        let value = String(repeating: "v", count: stringBytesMax - mark.utf8.count)
        let values = (0..<4).map { #""p\#($0)":"\#($0 == 0 ? mark : "01234567")\#(value)""# }
            .joined(separator: ",")
        let widgets = (0..<widgets).map {
            #"{"kind":"\#(name($0))","family":"systemSmall","parameters":{\#(values)}}"#
        }
        let controls = (0..<Self.widgets).map { #"{"kind":"\#(name($0))","id":"\#($0)"}"# }
        return filled(
            #"{"platform":"iOS","osVersion":"26.1","widgets":[\#(widgets.joined(separator: ","))],"#
                + #""controls":[\#(controls.joined(separator: ","))]}"#, to: registrationBytesMax)
    }

    /// A patch of 256 KiB: members that no registration has, called nearly as those it has.
    static func patch(osVersion: String) -> [UInt8] {
        members(
            after: #""osVersion":"\#(osVersion)""#, prefix: "widgt", to: registrationBytesMax)
    }

    /// An acknowledgement with three lists of 1,000 entries.
    static func acknowledgement(cursor: String) -> [UInt8] {
        let value = String(repeating: "v", count: 40)
        func list(_ entry: (Int) -> String) -> String {
            "[" + (0..<1_000).map(entry).joined(separator: ",") + "]"
        }
        let rebuilt = list {
            #"{"kind":"\#(kind($0 % kinds))","parameters":{"p0":"\#(value)\#($0)"},"ms":12.5}"#
        }
        let failed = list { #"{"kind":"\#(kind($0 % kinds))","reason":"\#(value)"}"# }
        let recommendations = list { #""\#(kind($0 % kinds))""# }
        return filled(
            #"{"cursor":"\#(cursor)","rebuilt":\#(rebuilt),"failed":\#(failed),"#
                + #""recommendations":\#(recommendations)}"#, to: registrationBytesMax)
    }

    // MARK: Changes

    private static func event(_ number: Int, _ data: String) -> String {
        #"{"specversion":"1.0","type":"changed","source":"/attack/\#(mark)","id":"\#(number)","#
            + #""data":\#(data)}"#
    }

    private static func batch(_ count: Int, _ data: String) -> [UInt8] {
        Array("[\((0..<count).map { event($0, data) }.joined(separator: ","))]".utf8)
    }

    /// The data of a change that raises 9,750 keys, of 64 values of 200 bytes.
    private static var wide: String {
        let value = String(repeating: "v", count: 200)
        let values = (0..<listValuesMax).map { #""\#(value)\#($0)""# }.joined(separator: ",")
        return #"{"entity":"Wide","attributes":{"wide":[\#(values)]}}"#
    }

    /// The data of a change that raises 10,000 keys.
    private static var hot: String {
        let value = String(repeating: "v", count: stringBytesMax)
        let attributes = (0..<16).map { #""a\#($0)":"\#(value)""# }.joined(separator: ",")
        return #"{"entity":"Hot","attributes":{\#(attributes)}}"#
    }

    /// The data of a change that raises 200 keys.
    private static var warm: String {
        let value = String(repeating: "v", count: stringBytesMax)
        return #"{"entity":"Warm","attributes":{"w0":"\#(value)","w1":"\#(value)"}}"#
    }

    /// One event that raises 9,750 keys.
    static var wideChange: [UInt8] { Array(event(0, wide).utf8) }
    /// One event that raises 10,000 keys.
    static var hotChange: [UInt8] { Array(event(0, hot).utf8) }
    /// A batch of 20 events that raise the 200,000 keys which one post may raise.
    static var hotBatch: [UInt8] { batch(20, hot) }
    /// A batch of 1,000 events that raise as many.
    static var warmBatch: [UInt8] { batch(1_000, warm) }
    /// A batch of 50 events that raise the 10,000 keys which one explanation may raise.
    static var explainedBatch: [UInt8] { batch(50, warm) }
    /// A batch of 1,000 events of about 8 KiB each.
    static var largeBatch: [UInt8] {
        let padding = String(repeating: "x", count: postBytesMax / 1_000 - 180)
        return filled(
            String(
                decoding: batch(1_000, #"{"entity":"Cold","id":"1","padding":"\#(padding)"}"#),
                as: UTF8.self), to: postBytesMax)
    }
    /// A body of 8 MiB of empty arrays.
    static var emptyArrays: [UInt8] {
        let one = Array("[],".utf8)
        var bytes = [UInt8(ascii: "[")]
        bytes.reserveCapacity(postBytesMax)
        for _ in 0..<(postBytesMax - 4) / one.count { bytes += one }
        return bytes + Array("[]]".utf8)
    }

    // MARK: Requests

    /// An order of a token of 64 KiB, which no token may have: 32 attributes of 64 values.
    static var tokenOrder: [UInt8] {
        let value = String(repeating: "v", count: 25)
        let attributes = (0..<attributes).map { number in
            let values = (0..<listValuesMax).map { #""\#(value)\#($0)""# }.joined(separator: ",")
            return #""a\#(number)":[\#(values)]"#
        }
        return filled(
            #"{"sub":"attacker","attributes":{\#(attributes.joined(separator: ","))}}"#,
            to: eventBytesMax)
    }
    /// An order of a push of 64 KiB.
    static var pushOrder: [UInt8] {
        members(after: #""channel":"widgets""#, prefix: "chanel", to: eventBytesMax)
    }
    /// A start of activities of 3 KiB.
    static var startOrder: [UInt8] {
        members(after: #""id":"1","type":"T""#, prefix: "atribute", to: startBytesMax)
    }
    /// An order of a reload of 64 KiB.
    static var reloadOrder: [UInt8] {
        let long = String(repeating: "k", count: eventBytesMax - 16)
        return Array(#"{"kind":"\#(long)"}"#.utf8)
    }
    /// A configuration of 1 MiB of unknown options.
    static var configuration: [UInt8] {
        members(after: #""listn":"x""#, prefix: "limts", to: catalogBytesMax)
    }

    // MARK: Parts

    /// An object with one member, and with as many further ones as fit.
    private static func members(after first: String, prefix: String, to bytes: Int) -> [UInt8] {
        var text = "{" + first
        var number = 0
        while true {
            let member = #","\#(prefix)\#(number)":0"#
            guard text.utf8.count + member.utf8.count < bytes else { break }
            text += member
            number += 1
        }
        return Array((text + "}").utf8)
    }

    /// The text with white space after it; as it is where it is too long already.
    private static func filled(_ text: String, to bytes: Int) -> [UInt8] {
        let own = Array(text.utf8)
        return own + [UInt8](repeating: UInt8(ascii: " "), count: max(0, bytes - own.count))
    }

    /// The query that asks for 64 kinds of the catalog, as many parameters as a query may have.
    static var kindsQuery: String {
        (0..<64).map { "kind=" + kind($0) }.joined(separator: "&")
    }
}
