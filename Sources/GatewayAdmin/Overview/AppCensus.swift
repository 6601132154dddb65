import GatewayCore
import GatewayEngine
import WidgetModel

/// How many clients and widgets an app has, and some of its clients, picked at random.
struct AppCensus: Sendable {
    /// Clients that are picked.
    static let picksMax = 40
    /// Kinds that are counted; a client may register any.
    private static let kindsMax = 500

    private(set) var clients = 0
    private(set) var widgets: [String: Int] = [:]
    private(set) var picks: [ClientKey] = []

    /// Counts a client. Each has the same chance to be among the picks.
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
        if picks.count < Self.picksMax {
            picks.append(key)
        } else {
            let place = Int.random(in: 0..<clients, using: &random)
            if place < Self.picksMax { picks[place] = key }
        }
    }
}

/// How fresh the widgets of a kind are, by the clients that were looked at.
struct KindFreshness: Sendable, Equatable {
    /// Widgets looked at, and those among them that are stale.
    private(set) var looked = 0
    private(set) var stale = 0
    /// Since when the one is stale that has been for longest, RFC 3339; `nil` when that is not known.
    private(set) var since: String?

    /// Counts a widget.
    ///
    /// - Parameter since: Since when it is stale, if that is known; all are of one form, and sort as
    ///   text.
    mutating func count(isStale: Bool, since: String?) {
        looked += 1
        guard isStale else { return }
        stale += 1
        if let since, self.since.map({ since < $0 }) ?? true { self.since = since }
    }
}
