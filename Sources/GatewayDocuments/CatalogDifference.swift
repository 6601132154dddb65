import WidgetModel

/// The effect of recent changes under the catalog in force and under a proposed one.
package struct CatalogDifference: Codable, Sendable {
    package var since = ""
    package var after: UInt64 = 0
    package var through: UInt64 = 0
    package var changes = 0
    /// Whether the log has more changes than were replayed.
    package var cut = false
    package var warnings: [Fault] = []
    package var now = Side()
    package var proposed = Side()
    package var kinds: [Kind] = []

    package init() {}

    /// The number of changes by how one catalog decides them.
    package struct Side: Codable, Sendable {
        package var unmatched = 0
        package var broad = 0
        package var refused = 0

        package init() {}
    }

    /// The effect on one target of a kind.
    package struct Kind: Codable, Sendable {
        package var kind = ""
        package var target = ""
        package var now: Figures?
        package var proposed: Figures?

        package init() {}
    }

    /// The effect on one target of a kind under one catalog.
    package struct Figures: Codable, Sendable {
        package var holders = 0
        package var changes = 0
        package var reloads = 0
        package var pushes = 0
        package var withheld = 0

        package init() {}
    }
}
