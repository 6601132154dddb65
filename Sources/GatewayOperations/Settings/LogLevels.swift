import Logging

/// The minimum log levels: by the logger's label, by a field of the record, or the default.
package struct LogLevels: Sendable, Equatable {
    /// A rule for records whose field has a certain value.
    struct FieldRule: Sendable, Equatable {
        let field: String
        let value: String
        let level: Logger.Level
    }

    /// The level where no rule applies.
    package var standard: Logger.Level
    /// By label; a label without a rule inherits the level of its prefix, up to a full stop.
    private(set) var labels: [String: Logger.Level] = [:]
    private(set) var fields: [FieldRule] = []

    /// A rule that cannot be read.
    package struct Unreadable: Error, Sendable, Equatable {
        /// The reason, for people.
        package let message: String
    }

    /// Logs everything from `standard` on.
    package init(_ standard: Logger.Level = .info) {
        self.standard = standard
    }

    /// Logs everything from `standard` on, except for `rules`: each `LABEL=LEVEL`, such as
    /// `timeline-gateway.push=debug`, or `FIELD:VALUE=LEVEL`, such as `client:my-iphone=trace`.
    ///
    /// - Throws: ``Unreadable`` that names the rule.
    package init(standard: Logger.Level, rules: [String]) throws(Unreadable) {
        self.standard = standard
        for rule in rules {
            guard let mark = rule.lastIndex(of: "="),
                let level = Logger.Level(rawValue: String(rule[rule.index(after: mark)...]))
            else {
                throw Unreadable(
                    message: "`\(rule)` must be LABEL=LEVEL or FIELD:VALUE=LEVEL, LEVEL one of "
                        + Logger.Level.allCases.map(\.rawValue).joined(separator: ", "))
            }
            let subject = rule[..<mark]
            guard !subject.isEmpty else {
                throw Unreadable(message: "`\(rule)` names neither a label nor a field")
            }
            if let colon = subject.firstIndex(of: ":") {
                fields.append(
                    FieldRule(
                        field: String(subject[..<colon]),
                        value: String(subject[subject.index(after: colon)...]), level: level))
            } else {
                labels[String(subject)] = level
            }
        }
    }

    /// The label of requests: at `info` only messages from `notice` on are logged.
    package static let requests = "timeline-gateway.requests"

    /// The minimum level for a label's records.
    package func level(of label: String) -> Logger.Level {
        // Asked of each message that may be logged.
        var name = labels.isEmpty ? "" : label[...]
        while !name.isEmpty {
            if let level = labels[String(name)] { return level }
            name = name.lastIndex(of: ".").map { name[..<$0] } ?? ""
        }
        return label == Self.requests && standard == .info ? .notice : standard
    }

    /// The lowest level at which a label's records may be logged. `own` is the logger's own level.
    package func lowest(of label: String, own: Logger.Level?) -> Logger.Level {
        fields.reduce(own ?? level(of: label)) { min($0, $1.level) }
    }

    /// Whether a record is logged. A rule for one of its fields overrides the rule for its label;
    /// of several rules for fields the most permissive applies.
    ///
    /// - Parameter own: The level set on the logger itself, which replaces its label's level.
    package func lets(
        _ level: Logger.Level, label: String, own: Logger.Level?, fields texts: [String: String]
    ) -> Bool {
        let matching = fields.filter { texts[$0.field] == $0.value }.map(\.level).min()
        return level >= matching ?? own ?? self.level(of: label)
    }
}
