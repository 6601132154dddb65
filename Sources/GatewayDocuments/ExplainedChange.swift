import WidgetModel

/// The explanation of changes that were not posted.
package struct ExplainedEvents: Codable, Sendable {
    /// The sequence of the catalog that was applied.
    package var catalog: UInt64 = 0
    package var events: [ExplainedChange] = []

    package init() {}
}

/// The explanation of one change: the rules considered, and who holds what they match.
package struct ExplainedChange: Codable, Sendable {
    // Of a change in the log.
    package var sequence: UInt64?
    package var time: String?
    package var operation: String?
    package var urgency: String?

    package var source: String?
    package var id: String?
    package var properties: [String]?

    package var entity = ""
    package var unmatched = false
    package var broad = false
    package var rules: [ConsideredRule] = []
    package var rulesOfOtherEntities = 0
    /// The number of rules beyond those that are shown.
    package var rulesNotShown: Int?
    package var entityID: String?
    package var hint: String?

    // Of a change in the log: the sequence of the catalog, and whether it was in force then.
    package var catalog: UInt64?
    package var catalogOfThen: Bool?

    package var holders = SubscriptionSummary()
    package var outcomes = OutcomeSummary()

    package init() {}
}

/// A rule with its verdict on a change.
package struct ConsideredRule: Codable, Sendable {
    package var kind = ""
    package var target = ""
    /// The path of the rule in the catalog.
    package var place = ""
    package var verdict = ""
    /// The attribute whose literal differs.
    package var attribute: String?
    /// The properties and operations that the rule lists; absent if it is for all.
    package var properties: [String]?
    package var operations: [String]?
    package var broad: Bool?
    /// The keys that the change invalidated by this rule.
    package var keys: [[BoundAttribute]]?

    package init() {}
}

/// The value of a change's attribute at one binding of a rule.
package struct BoundAttribute: Codable, Sendable {
    package var attribute = ""
    package var binding = ""
    package var value: String?
    /// `true` if the widget's parameter is unset.
    package var unset: Bool?
    /// `true` if the change does not have the attribute.
    package var missing: Bool?

    package init() {}
}

/// The number of widgets, sets and controls that a change makes stale.
package struct SubscriptionSummary: Codable, Sendable {
    package var count = 0
    package var widgets = 0
    package var clients = 0
    package var kinds = JSONMap<Int>()
    package var platforms = JSONMap<Int>()
    package var channels = JSONMap<Int>()

    package init() {}
}

/// The number of holders with each outcome; the first five add up to all.
package struct OutcomeSummary: Codable, Sendable {
    package var confirmed = 0
    package var sent = 0
    package var collapsed = 0
    package var withheld = 0
    package var unreachable = 0
    package var sentBy = JSONMap<Int>()
    package var collapsedInto: [Collapsed] = []
    package var withheldFor: [Withheld] = []
    package var unreachableFor = JSONMap<Int>()
    /// Example clients for each outcome.
    package var examples: JSONMap<[String]>?

    package init() {}

    /// Holders whose notification included a later change.
    package struct Collapsed: Codable, Sendable {
        package var sequence: UInt64
        package var holders: Int

        package init(sequence: UInt64, holders: Int) {
            (self.sequence, self.holders) = (sequence, holders)
        }
    }

    /// Holders that are to be notified later, for one reason.
    package struct Withheld: Codable, Sendable {
        package var reason = ""
        package var holders = 0
        package var from: String?
        package var until: String?

        package init() {}
    }
}
