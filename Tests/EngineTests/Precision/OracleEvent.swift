import GatewayTestSupport
import WidgetModel

/// A push address of a client, named by its token, in hexadecimal, or by its host.
enum OracleAddress: Sendable, Hashable {
    case widgets(String)
    case background(String)
    case controls(String)
    /// Of one Live Activity.
    case activity(String)
    case webhook(String)

    var isWidgets: Bool { if case .widgets = self { true } else { false } }
    var isBackground: Bool { if case .background = self { true } else { false } }
    var isControls: Bool { if case .controls = self { true } else { false } }
    var isActivity: Bool { if case .activity = self { true } else { false } }
    var isWebhook: Bool { if case .webhook = self { true } else { false } }
}

/// A registration that changes nothing of what a client holds.
enum OracleTouch: Sendable, Hashable, CaseIterable {
    /// The same document.
    case put
    /// The same document with its widgets in another order.
    case reorder
    /// A patch without members.
    case patch
    /// A patch of the system's version.
    case version
}

/// An operational event. Scripts are lists of these, and a report prints them in the same form.
enum OracleEvent: Sendable, Hashable {
    /// A client registers, and builds a `detail` of the panda and the `status` of account 1. Its
    /// account is vouched for by its token or set by its backend.
    case client(String, [OracleAddress] = [], vouched: Bool = false)
    /// This number of clients register, each with a `detail` of the panda and an APNs address.
    case devices(String, Int)
    /// This number of clients register, each with a recommendation set of a character only.
    case holders(String, Int, of: String)
    /// The client acknowledges whatever its stream tells, with the newest id, at once.
    case prompt(String)

    // Registrations.
    case touch(String, OracleTouch)
    /// A widget of a kind and a character more, or less.
    case adds(String, String, String)
    case removes(String, String, String)
    case moves(String, account: String)
    case addresses(String, [OracleAddress])
    /// A control of a lamp, with an address of its own or without one; removed without a lamp.
    case control(String, id: String, lamp: String?, OracleAddress? = nil)
    /// A Live Activity of a character begins, or gets another token: it has one from its begin on,
    /// or never.
    case begins(String, hero: String, OracleAddress? = nil)
    case ends(String, hero: String)
    /// A recommendation set of a character.
    case set(String, of: String, builtAtCursor: Bool)

    // Streams, polls, acknowledgements.
    case opens(String, loop: Int = 0, kinds: [String] = [])
    case breaks(String)
    case polls(String, kind: String? = nil)
    /// All clients of a name with a number poll.
    case eachPolls(String)
    case acks(String, sets: Bool = false)

    // Backends.
    case change(String, String)
    /// So many changes in one post.
    case burst(String, String, Int)
    case catalog(OracleCatalog.Edit)

    // Time and operation.
    case pass(Int64)
    /// So many unused keys change that the versions of all others are forgotten.
    case flood
    /// 60 changes without effect, 30 s, and then the gateway's maintenance of a log of 100.
    case turnover
    case restart
    /// A cursor proves that a tail of the log is lost.
    case void
    /// The client's first APNs address answers that the token is dead.
    case dies(String)
    /// The client's first push address, or that of an activity, fails so many times.
    case fails(String, Int)

    /// The event as a line of a script.
    var line: String {
        var text = ".\(self)"
        for type in ["OracleAddress", "OracleTouch", "OracleCatalog.Edit"] {
            text = text.replacing("EngineTests.\(type)", with: "")
        }
        return text
    }
}

/// Draws the events of a seed. They depend on the seed alone.
struct OracleEventSource {
    private static let names = ["a", "b", "c", "d"]
    private static let characters = ["panda", "owl", "fox"]
    private var random: SplitMix64

    /// The events of a seed, at the end of which everything is given time and all clients poll.
    static func events(seed: UInt64, count: Int = 100) -> [OracleEvent] {
        var source = OracleEventSource(random: SplitMix64(seed: seed))
        var events = [source.edit(), source.edit()]
        for (place, name) in names.enumerated() {
            events.append(
                .client(name, source.addresses(of: name), vouched: !place.isMultiple(of: 2)))
            if source.random.happens(60) { events.append(.prompt(name)) }
            if source.random.happens(60) { events.append(.opens(name, loop: place % 2)) }
        }
        for _ in 0..<count { events.append(source.next()) }
        events.append(.pass(900_000))
        for name in names { events.append(.polls(name)) }
        events.append(.pass(60_000))
        return events
    }

    private mutating func next() -> OracleEvent {
        let name = random.pick(Self.names)
        let character = random.pick(Self.characters)
        switch random.below(212) {
        case 0..<46:
            let (entity, id) = subject()
            return .change(entity, id)
        case 46..<56:
            let (entity, id) = subject()
            return .burst(entity, id, 2 + random.below(3))
        case 56..<96:
            return .pass(random.pick([300, 300, 1_000, 5_000, 15_000, 21_000, 61_000, 330_000]))
        case 96..<112: return .acks(name, sets: random.happens(50))
        case 112..<124:
            return .polls(name, kind: random.happens(20) ? random.pick(["detail", "status"]) : nil)
        case 124..<136:
            return .opens(
                name, loop: random.below(2), kinds: random.happens(20) ? ["status"] : [])
        case 136..<144: return .breaks(name)
        case 144..<152: return .touch(name, random.pick(OracleTouch.allCases))
        case 152..<158: return .adds(name, random.pick(["detail", "busy", "boss"]), character)
        case 158..<162: return .removes(name, random.pick(["detail", "busy"]), character)
        case 162..<166: return .moves(name, account: random.pick(["1", "2"]))
        case 166..<174: return .addresses(name, addresses(of: name))
        case 174..<179:
            let token = OracleAddress.controls(token(of: name))
            return .control(
                name, id: random.pick(["1", "2"]), lamp: random.happens(75) ? character : nil,
                random.happens(50) ? token : nil)
        case 179..<183:
            return .set(name, of: character, builtAtCursor: random.happens(60))
        case 183..<188: return edit()
        case 188..<189: return .flood
        case 189..<191: return .turnover
        case 191..<195: return .restart
        case 195..<196: return .void
        case 196..<198: return .dies(name)
        case 198..<206:
            guard character != "fox" else { return .begins(name, hero: character) }
            let token = "\(name)\(character == "owl" ? 0 : 1)0\(random.below(2))"
            return .begins(name, hero: character, .activity(token))
        case 206..<210: return .ends(name, hero: character)
        default: return .fails(name, 1 + random.below(2))
        }
    }

    private mutating func subject() -> (entity: String, id: String) {
        let entity = random.pick([
            "Character", "Character", "News", "Account", "Lamp", "Offer", "Mood", "Boss", "Fight",
        ])
        return (entity, random.pick(entity == "Account" ? ["1", "2"] : Self.characters))
    }

    private mutating func edit() -> OracleEvent {
        let kind = random.pick(["detail", "busy", "status", "lamp"])
        return switch random.below(8) {
        case 0..<2: .catalog(.rename(kind))
        case 2..<6: .catalog(.window(kind, random.pick([0, 1_000, 10_000, 60_000])))
        case 6: .catalog(.moods(random.happens(50)))
        default: .catalog(.health(random.happens(50)))
        }
    }

    private mutating func addresses(of name: String) -> [OracleAddress] {
        let token = token(of: name)
        return random.pick([
            [], [.widgets(token)], [.widgets(token)], [.webhook(token)],
            [.widgets(token), .webhook(name)], [.webhook(name), .widgets(token)],
            [.widgets(token), .background(token), .controls(token)],
        ])
    }

    private mutating func token(of name: String) -> String { "\(name)\(random.below(4))" }
}
