/// A naive model of who had what, what changed, and who was told of it: lists of changes by name,
/// without versions, windows, lanes or schedules. It judges every notification, push and webhook.
///
/// It follows the design literally. Where the design is silent it holds these rules:
///
/// - **Time.** An event has happened when everything is sent that it leads to without time passing.
///   "At once" is before the next event.
/// - **Registration.** An item that a client adds, or shows since its account moved, is built when
///   it registers: only later changes have to be told. Changes between its cursor and then may be
///   told. With a stream open, what its id does not cover yet may be told again.
/// - **Server-held cursor.** It moves with the head while the client has an address and nothing
///   unconfirmed. A new address begins there: it may be told what is unconfirmed, even if another
///   address accepted it. What streams and polls told before there was any address need not be
///   pushed. What a client adds while it is owed something may be told since that cursor.
/// - **Cursor of an address.** An accepted push moves it to the position at which the push was
///   composed. It moves with the head while nothing is owed there: neither a floor that passes
///   nor a restart makes owed what was told.
/// - **No address.** A client without a push address has no server-held cursor across a restart:
///   its first address may be told everything since it registered.
/// - **Grace.** It begins with the id that covers the change, because before it the client cannot
///   confirm. A stream for some kinds gives none to other kinds, and need not give any. When a
///   stream ended, or the gateway started, a push may come at once and has to come after 20 s. What
///   a new stream tells may be pushed 40 s after the change. With windows, the gateway may notice
///   only 5 s later that the id passed. A stream that opened in a window has windows of its own,
///   which end later than those of the pushes: what it told may be pushed less than 20 s after it.
/// - **Ids.** A stream without a key of a rule with a window has an id that covers what it told.
/// - **Collapse.** Per rule and value, on each stream and at each address, APNs included. A window
///   begins with the change where a grace delays the push. What is sent for another reason may name
///   what waits. A catalog that leaves a rule and its window alone ends no window; a restart and
///   another window do, and a registration may.
/// - **Next address.** It is told only while all before it are dead, failed three times in a
///   row, or had all repeats.
/// - **Everything.** `all` is for cursors that are missing, void or below a floor, and for
///   addresses that were owed something, or for which a change waited, when the floor passed.
/// - **Sets and floors.** An unchanged set may be told when versions of keys were forgotten, but
///   not when the log was. A set with other items may be told what changed since the old one was
///   confirmed.
/// - **Live Activities.** One with an address is owed everything that no push told it: streams,
///   polls, acknowledgements and the interval do not count. One without is like a control.
/// - **Void epoch.** Everything is owed to every address, once, without a grace.
/// - **Repeats.** Allowed at the times that push.md states, never required. They tell everything
///   that the client has not confirmed.
/// - **Catalogs.** A new rule tells the streams again what their id does not cover.
/// - **Spread.** At most five times `push.spreadPerSecond` in one second, because hashes clump.
struct Oracle {
    /// The fault of a notification, or of its absence.
    enum Rule: String, Sendable {
        /// Nothing that concerns the client changed since it confirmed or was told on that channel.
        case needless
        /// Pushed beside a stream within the grace.
        case early
        /// Pushed to the next address although the one before it works.
        case turn
        /// Told twice in a collapse window.
        case collapse
        /// Many pushes at one time.
        case spread
        /// Told everything instead of what changed.
        case everything
        /// Told of what the client does not hold, or where it gave up the address.
        case foreign
        /// Not told in time.
        case late
        /// A poll leaves out a change.
        case lost
        /// The id of a stream is wrong.
        case id
    }

    struct Fault: Sendable, CustomStringConvertible {
        let rule: Rule
        let text: String

        var description: String { "\(rule.rawValue): \(text)" }
    }

    /// The event before a look at what was sent.
    enum Step: Sendable, Equatable {
        /// A change, a catalog, or time.
        case live
        /// This stream was opened.
        case opening(Int)
        case registration
        case other
    }

    /// A change that concerns an item.
    struct Hit: Sendable {
        let sequence: UInt64
        let at: Int64
        /// The entity of the rule; empty where no change did it.
        var rule = ""
        /// The collapse window of the rule, in milliseconds.
        var window: Int64 = 0
        /// The longest time that it may wait for the end of a window.
        var wait: Int64 = 0
        /// Whether it has to be told; the others may be.
        var isRequired = true
        var isVoid = false
    }

    /// Where a collapse window is open.
    struct Key: Hashable {
        let item: OracleItem
        let rule: String
    }

    struct Stream {
        /// `nil` for all kinds.
        let kinds: Set<String>?
        /// The end of the log when it opened.
        let openedAt: UInt64
        /// The cursor that it resumed from.
        var base: UInt64
        /// Whether it may be told `all` next.
        var mayAll: Bool
        /// What it told of an item, if more than ``base``.
        var told: [OracleItem: UInt64] = [:]
        /// The ids that it carried, and when.
        var ids: [(id: UInt64, at: Int64)] = []
        var windows: [Key: Int64] = [:]

        /// The last id; at first the cursor that it resumed from.
        var lastID: UInt64 { ids.last?.id ?? 0 }

        func covers(_ item: OracleItem) -> Bool { kinds?.contains(item.kind) ?? true }

        /// The first id that covers a change.
        func covered(_ sequence: UInt64) -> (id: UInt64, at: Int64)? {
            ids.first { $0.id >= sequence }
        }
    }

    /// A push address of a client.
    struct Place {
        /// Since when it is registered.
        let since: Int64
        /// The sequence up to which nothing is left to tell it, of sets and of all else.
        var told: UInt64
        var toldSets: UInt64 = 0
        /// Until when it may be told everything.
        var mayAllUntil = Int64.min
        /// After these sequences an item that waited at an accepted push must be told.
        var left: [OracleItem: UInt64] = [:]
        var failures = 0
        var retryAt: Int64 = 0
        var acceptedAt: Int64 = 0
        /// The pushes that may be repeated, each with its time and the number of its repeats, and
        /// whether it told everything.
        var unanswered: [OracleItem.Sort: (at: Int64, repeats: Int, all: Bool)] = [:]
        var windows: [Key: Int64] = [:]

        var works: Bool {
            failures < 3 && !unanswered.values.contains { $0.repeats >= Oracle.repeatWaits.count }
        }
    }

    struct Client {
        struct Widget: Hashable {
            let kind: String
            /// Of no meaning for `status` and `boss`.
            let character: String
        }

        struct Control {
            let id: String
            let lamp: String
            var address: OracleAddress?
        }

        struct Activity {
            let hero: String
            let address: OracleAddress?
        }

        struct Offer {
            let character: String
            let builtAt: String?
        }

        // Its registration.
        var widgets: [Widget] = []
        var account = "1"
        var isVouched = false
        var offer: Offer?
        var controls: [Control] = []
        var activities: [Activity] = []
        var addresses: [OracleAddress] = []
        var osVersion = 1

        /// The newest cursor that it has, and its sequence; 0 if it is void.
        var cursor: String?
        var position: UInt64 = 0
        var isPrompt = false

        // What the gateway has to know.
        var confirmed: UInt64 = 0
        var confirmedSet: UInt64 = 0
        /// The server-held cursor.
        var held: UInt64 = 0
        var isForgotten = false
        /// The position at which it registered each item.
        var since: [OracleItem: UInt64] = [:]
        /// The addresses for each item as last registered.
        var routes: [OracleItem: [OracleAddress]] = [:]
        /// The server-held cursor when it added an item while it was owed another.
        var added: [OracleItem: UInt64] = [:]
        /// The sequences up to which streams and polls told an item, and addresses accepted it.
        var seen: [OracleItem: UInt64] = [:]
        var reported: [OracleItem: UInt64] = [:]
        var isKnownToAnswer = false
        var contactAt: Int64 = 0
        /// The changes up to here open no windows: it registered after them, or a restart came.
        var windowless: UInt64 = 0
        /// When its last stream opened or ended.
        var streamAt: Int64 = 0
        /// When APNs last accepted a push.
        var pushedAt: Int64 = 0
        var places: [OracleAddress: Place] = [:]
        var streams: [Int: Stream] = [:]

        /// Its items, each with its addresses in order of preference.
        var items: [(item: OracleItem, route: [OracleAddress])] {
            func route(_ isOwn: (OracleAddress) -> Bool) -> [OracleAddress] {
                addresses.filter { $0.isWebhook || isOwn($0) }
            }
            var items: [(item: OracleItem, route: [OracleAddress])] = []
            for widget in widgets {
                let value =
                    switch widget.kind {
                    case "status": account
                    case "boss": ""
                    default: widget.character
                    }
                let item = OracleItem(
                    sort: widget.kind == "boss" ? .relevance : .timeline, kind: widget.kind,
                    value: value)
                items.append((item, route(\.isWidgets)))
            }
            if let offer {
                let item = OracleItem(sort: .set, kind: "detail", value: offer.character)
                items.append((item, route(\.isBackground)))
            }
            for control in controls {
                let item = OracleItem(sort: .control, kind: "lamp", value: control.lamp)
                items.append((item, control.address.map { [$0] } ?? route(\.isControls)))
            }
            for activity in activities {
                let item = OracleItem(sort: .activity, kind: "Battle", value: activity.hero)
                items.append((item, activity.address.map { [$0] } ?? route(\.isActivity)))
            }
            return items
        }

        func confirmation(of item: OracleItem) -> UInt64 {
            item.sort == .set ? confirmedSet : confirmed
        }

        /// Whether it is an activity with an address, as last registered.
        func isPushed(_ item: OracleItem) -> Bool {
            routes[item]?.contains(where: \.isActivity) ?? false
        }
    }

    /// The time that a stream has before a push.
    static let grace: Int64 = 20_000
    /// How often the id of a stream is read while it is below a change.
    static let idInterval: Int64 = 5_000
    /// The least time before each repeat of a push.
    static let repeatWaits: [Int64] = [300_000, 1_800_000, 10_800_000]
    /// The shortest time between two pushes through APNs for a kind.
    static let interval: Int64 = 30_000

    let devicesPerSecond: Int
    var now: Int64 = 0
    /// The end of the log.
    var head: UInt64 = 0
    var clients: [String: Client] = [:]
    private(set) var catalog = OracleCatalog()
    private(set) var faults: [Fault] = []
    /// The windows before the last catalog that changed them.
    private var formerWindows: [String: Int64] = [:]
    private var history: [OracleItem: [Hit]] = [:]
    /// The sequence up to which a floor may have passed.
    private(set) var forgotten: UInt64 = 0
    private(set) var restartedAt: Int64 = 0
    /// The pushes of the last second.
    var recent: [Int64] = []

    init(devicesPerSecond: Int) { self.devicesPerSecond = devicesPerSecond }

    mutating func blame(_ rule: Rule, _ text: String) {
        faults.append(Fault(rule: rule, text: text))
    }

    // MARK: What happens

    mutating func changed(_ entity: String, _ id: String, at sequence: UInt64) {
        for rule in catalog.rules where rule.entity == entity {
            let window = catalog.window(of: rule.kind)
            let item = OracleItem(
                sort: rule.sort, kind: rule.kind, value: rule.match.isEmpty ? "" : id)
            history[item, default: []].append(
                Hit(
                    sequence: sequence, at: now, rule: entity, window: window,
                    wait: max(window, formerWindows[rule.kind] ?? 0)))
        }
    }

    /// A catalog came into force.
    ///
    /// - Parameter sequence: Its place in the log; `nil` if it is the document in force.
    mutating func put(_ other: OracleCatalog, at sequence: UInt64?) {
        let before = catalog
        catalog = other
        guard let sequence else { return }
        for rule in before.rules where !other.rules.contains(rule) {
            endWindows { $0.item.kind == rule.kind && $0.rule == rule.entity }
        }
        for rule in other.rules where !before.rules.contains(rule) {
            concernAll(rule.sort, rule.kind, Hit(sequence: sequence, at: now))
        }
        for rule in other.rules where other.window(of: rule.kind) != before.window(of: rule.kind) {
            formerWindows[rule.kind] = before.window(of: rule.kind)
            endWindows { $0.item.kind == rule.kind }
        }
        forEachStream { $0.mayAll = $0.mayAll || $0.lastID < $1 }
    }

    /// A client has another registration than before, whose content is in ``clients``.
    mutating func registered(_ name: String, isNew: Bool = false) {
        guard var client = clients[name] else { return }
        if isNew {
            client.confirmed = head
            client.confirmedSet = head
            client.held = head
            client.position = head
        }
        client.windowless = head
        let items = Set(client.items.map(\.item))
        let hadAddress = !client.places.isEmpty
        let isOwed = client.places.keys.contains { !$0.isActivity && owes(client, at: $0) }
        // What was owed and is removed counts as owed once it is forgotten.
        let owedRemoved = client.places.values.contains { place in
            client.since.keys.contains { item in
                !items.contains(item) && !client.isPushed(item)
                    && !hits(of: item, after: bound(item, client, place)).isEmpty
            }
        }
        for address in Array(client.places.keys) {
            // The address is new for what was told elsewhere. Another lamp is in the same place.
            for (item, route) in client.items where route.contains(address) {
                let before = client.routes[item] ?? (item.sort == .control ? [] : route)
                let confirmed = client.confirmation(of: item)
                guard !before.contains(address) else { continue }
                client.places[address]?.left[item] = confirmed
                if confirmed < forgotten { client.places[address]?.mayAllUntil = .max }
            }
        }
        client.routes = Dictionary(client.items.map { ($0.item, $0.route) }) { $0 + $1 }
        for item in items where client.since[item] == nil {
            client.since[item] = head
            if isOwed { client.added[item] = client.held }
        }
        client.since = client.since.filter { items.contains($0.key) }
        client.seen = client.seen.filter { items.contains($0.key) }
        client.reported = client.reported.filter { items.contains($0.key) }
        let addresses = Set(
            client.addresses + client.controls.compactMap(\.address)
                + client.activities.compactMap(\.address))
        let mayAllUntil = client.places.values.map(\.mayAllUntil).max() ?? .min
        client.places = client.places.filter { addresses.contains($0.key) }
        for address in addresses where client.places[address] == nil {
            var told = client.isForgotten ? 0 : client.held
            // The client's first address of all covers what the client has not confirmed.
            if address.isActivity, hadAddress,
                let item = client.items.first(where: { $0.route == [address] })?.item
            {
                told = max(client.since[item] ?? 0, client.reported[item] ?? 0)
            }
            // What is owed at a new address is not sent within the grace of a stream.
            client.places[address] = Place(
                since: now, told: told,
                mayAllUntil: max(mayAllUntil, told < forgotten ? now + 2 * Self.grace : .min))
        }
        for address in addresses {
            client.places[address]?.windows = [:]
            if owedRemoved { client.places[address]?.mayAllUntil = .max }
        }
        for (number, stream) in client.streams where stream.lastID < forgotten {
            client.streams[number]?.mayAll = true
        }
        clients[name] = client
    }

    /// A client registered a set of other items, or built at another cursor.
    ///
    /// - Parameter floor: The position above which the log is kept. Nobody knows later what changed
    ///   between an older cursor and it.
    mutating func registeredSet(
        of name: String, builtAt: UInt64?, isNew: Bool, floor: UInt64
    ) {
        let items = clients[name]?.items.map(\.item).filter { $0.sort == .set } ?? []
        for item in items { clients[name]?.since[item] = head }
        if let builtAt {
            clients[name]?.confirmedSet = builtAt
            for item in items where builtAt < floor {
                history[item, default: []].append(
                    Hit(sequence: floor, at: now, isRequired: false))
            }
        } else if isNew {
            clients[name]?.confirmedSet = head
        }
        for address in addresses(of: name) {
            clients[name]?.places[address]?.toldSets = 0
        }
    }

    mutating func opened(_ number: Int, by name: String, kinds: [String]) {
        guard var client = clients[name] else { return }
        client.streams[number] = Stream(
            kinds: kinds.isEmpty ? nil : Set(kinds), openedAt: head, base: client.position,
            mayAll: client.position == 0 || client.position < forgotten,
            ids: [(client.position, now)])
        client.streamAt = now
        contact(&client)
        if kinds.isEmpty { confirm(&client, client.position) }
        clients[name] = client
    }

    mutating func closed(_ number: Int, of name: String) {
        clients[name]?.streams[number] = nil
        clients[name]?.streamAt = now
    }

    mutating func acknowledged(_ name: String, at sequence: UInt64, sets: Bool) {
        guard var client = clients[name] else { return }
        client.isKnownToAnswer = true
        contact(&client)
        confirm(&client, sequence)
        if sets, client.offer != nil { client.confirmedSet = max(client.confirmedSet, sequence) }
        clients[name] = client
    }

    /// The versions of all keys of these clients were forgotten.
    ///
    /// - Parameter first: The first of the changes that took their place.
    mutating func flooded(from first: UInt64) {
        forgetUpTo(head)
        concernAll(.set, "detail", Hit(sequence: first, at: now, isRequired: false))
    }

    /// The gateway was started again, with a log that begins after `floor`.
    mutating func restarted(floor: UInt64) {
        restartedAt = now
        endWindows { _ in true }
        for name in Array(clients.keys) {
            guard var client = clients[name] else { continue }
            client.streams = [:]
            client.windowless = head
            if client.places.isEmpty {
                client.isForgotten = true
                let head = head
                client.since = client.since.mapValues { _ in head }
            }
            clients[name] = client
        }
        forgetUpTo(floor)
    }

    /// All cursors and positions became void.
    mutating func voided() {
        forgotten = max(forgotten, head)
        for rule in catalog.rules {
            let isRequired = rule.sort != .set
            concernAll(
                rule.sort, rule.kind,
                Hit(sequence: head, at: now, isRequired: isRequired, isVoid: true))
        }
        for name in Array(clients.keys) {
            guard var client = clients[name] else { continue }
            client.position = 0
            client.confirmed = 0
            client.held = 0
            client.reported = [:]
            client.seen = [:]
            for address in Array(client.places.keys) {
                client.places[address]?.told = 0
                client.places[address]?.toldSets = 0
                client.places[address]?.mayAllUntil = .max
            }
            for number in Array(client.streams.keys) {
                client.streams[number]?.base = 0
                client.streams[number]?.mayAll = true
                client.streams[number]?.told = [:]
                client.streams[number]?.ids = []
                client.streams[number]?.windows = [:]
            }
            clients[name] = client
        }
    }

    func contact(_ client: inout Client) {
        client.contactAt = now
        for address in Array(client.places.keys) { client.places[address]?.unanswered = [:] }
    }

    private func confirm(_ client: inout Client, _ sequence: UInt64) {
        for address in Array(client.places.keys) where sequence >= forgotten {
            client.places[address]?.mayAllUntil = .min
        }
        client.confirmed = max(client.confirmed, sequence)
        client.isForgotten = false
    }

    private func addresses(of name: String) -> [OracleAddress] {
        clients[name].map { Array($0.places.keys) } ?? []
    }

    private mutating func concernAll(_ sort: OracleItem.Sort, _ kind: String, _ hit: Hit) {
        let every = OracleItem(sort: sort, kind: kind, value: OracleItem.every)
        history[every, default: []].append(hit)
    }

    /// A floor passed; addresses that are owed something may be told everything.
    private mutating func forgetUpTo(_ sequence: UInt64) {
        forgotten = max(forgotten, sequence)
        for name in Array(clients.keys) {
            for address in addresses(of: name) {
                guard let client = clients[name], let place = client.places[address],
                    place.told < forgotten, owes(client, at: address) || hasOpenWindow(client)
                else { continue }
                clients[name]?.places[address]?.mayAllUntil = .max
            }
        }
    }

    private mutating func endWindows(_ isOver: (Key) -> Bool) {
        for name in Array(clients.keys) {
            guard var client = clients[name] else { continue }
            for (address, place) in client.places {
                client.places[address]?.windows = place.windows.filter { !isOver($0.key) }
            }
            for (number, stream) in client.streams {
                client.streams[number]?.windows = stream.windows.filter { !isOver($0.key) }
            }
            clients[name] = client
        }
    }

    private mutating func forEachStream(_ body: (inout Stream, _ forgotten: UInt64) -> Void) {
        for name in Array(clients.keys) {
            guard var client = clients[name] else { continue }
            for number in Array(client.streams.keys) {
                guard var stream = client.streams[number] else { continue }
                body(&stream, forgotten)
                client.streams[number] = stream
            }
            clients[name] = client
        }
    }

    // MARK: What is known of changes

    /// The changes of an item after a position.
    func hits(
        of item: OracleItem, after sequence: UInt64, upTo last: UInt64 = .max
    ) -> [Hit] {
        let every = OracleItem(sort: item.sort, kind: item.kind, value: OracleItem.every)
        return ((history[item] ?? []) + (history[every] ?? [])).filter {
            $0.sequence > sequence && $0.sequence <= last
        }
    }

    /// The position after which an address may be told changes of an item.
    func bound(_ item: OracleItem, _ client: Client, _ place: Place) -> UInt64 {
        if client.isPushed(item) { return place.told }
        let left = place.left[item] ?? .max
        if item.sort == .set { return max(client.confirmedSet, min(place.toldSets, left)) }
        let told = min(place.told, client.added[item] ?? .max, left)
        return max(client.isForgotten ? 0 : client.confirmed, told)
    }

    private func owes(_ client: Client, at address: OracleAddress) -> Bool {
        guard let place = client.places[address] else { return false }
        return client.items.contains { item, route in
            route.contains(address) && !hits(of: item, after: bound(item, client, place)).isEmpty
        }
    }

    /// Whether a change of the client's may wait in a window.
    private func hasOpenWindow(_ client: Client) -> Bool {
        client.items.contains { item, _ in
            hits(of: item, after: 0).contains { $0.at + 2 * $0.wait > now }
        }
    }

    /// Ends a look: moves the cursors of those who are owed nothing with the head.
    mutating func moveCursors() {
        for name in Array(clients.keys) {
            guard var client = clients[name] else { continue }
            let isOwed = client.items.contains { item, _ in
                item.sort != .set && !client.isPushed(item)
                    && !hits(of: item, after: max(client.confirmed, client.held)).isEmpty
            }
            if !isOwed, !client.places.isEmpty { client.held = head }
            if !isOwed { client.added = [:] }
            for number in Array(client.streams.keys) { client.streams[number]?.mayAll = false }
            for (address, place) in client.places {
                let owed = client.items.filter { item, route in
                    route.contains(address)
                        && !hits(of: item, after: bound(item, client, place)).isEmpty
                }
                if owed.allSatisfy({ $0.item.sort == .set }) {
                    client.places[address]?.told = head
                }
                if owed.allSatisfy({ $0.item.sort != .set }) {
                    client.places[address]?.toldSets = head
                }
            }
            clients[name] = client
        }
    }
}
