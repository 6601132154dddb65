import CatalogModel
import GatewayCore
import WidgetModel

/// The numbers of an app's clients and widgets, and some of its clients, picked at random.
struct AppCensus: Sendable {
    /// The maximum number of clients picked.
    static let picksMax = 40
    /// The maximum number of kinds counted; a client may register any kind.
    private static let kindsMax = 500

    private(set) var clients = 0
    private(set) var widgets: [String: Int] = [:]
    private(set) var picks: [ClientKey] = []
    /// The number of clients whose widgets of a kind no change makes stale, because they lack
    /// attributes.
    private(set) var lacking: [String: Int] = [:]
    /// The client attributes that rules bind to, for the kinds whose rules all bind to some.
    private let needs: [String: AttributeNeeds]

    /// Creates an empty census of the clients of an app with these rules.
    init(_ ruleSet: RuleSet? = nil) {
        needs =
            ruleSet?.catalog.widgets.reduce(into: [:]) { needs, widget in
                let own = ruleSet?.attributeNeeds(ofKind: widget.kind, sets: false)
                if let own, own.canLackAll { needs[widget.kind] = own }
            } ?? [:]
    }

    /// Counts a client. Each client has the same chance of being picked.
    mutating func count(
        _ key: ClientKey, _ record: ClientRecord, using random: inout some RandomNumberGenerator
    ) {
        clients += 1
        for widget in record.registration.widgets
        where widgets[widget.kind] != nil || widgets.count < Self.kindsMax {
            let (sum, isTooMany) = widgets[widget.kind, default: 0].addingReportingOverflow(
                widget.count)
            widgets[widget.kind] = isTooMany ? .max : sum
        }
        if !needs.isEmpty { countLacking(record) }
        if picks.count < Self.picksMax {
            picks.append(key)
        } else {
            let place = Int.random(in: 0..<clients, using: &random)
            if place < Self.picksMax { picks[place] = key }
        }
    }

    private mutating func countLacking(_ record: ClientRecord) {
        var counted: Set<String> = []
        let registration = record.registration
        for kind in registration.widgets.map(\.kind) + registration.controls.map(\.kind)
        where counted.insert(kind).inserted {
            guard needs[kind]?.areLacking(in: record.attributes) ?? false else { continue }
            lacking[kind, default: 0] += 1
        }
    }
}

/// The freshness of the widgets of a kind, in the clients that were checked.
struct KindFreshness: Sendable, Equatable {
    /// The number of widgets checked, and of those that are stale.
    private(set) var looked = 0
    private(set) var stale = 0
    /// The time since which the longest stale widget has been stale, in RFC 3339; `nil` if unknown.
    private(set) var since: String?

    /// Counts a widget. `since` is the time since when it is stale, if known; times have one form,
    /// and sort as text.
    mutating func count(isStale: Bool, since: String?) {
        looked += 1
        guard isStale else { return }
        stale += 1
        if let since, self.since.map({ since < $0 }) ?? true { self.since = since }
    }
}
