import Logging

/// From which level on something is logged: by the logger's label, by a field of the record, or
/// else for all.
package struct LogLevels: Sendable, Equatable {
    /// A rule for records with a field of some value.
    struct FieldRule: Sendable, Equatable {
        let field: String
        let value: String
        let level: Logger.Level
    }

    /// What holds where no rule does.
    package var standard: Logger.Level
    /// By label; a label without a rule has that of the one it begins with, at a full stop.
    private(set) var labels: [String: Logger.Level] = [:]
    private(set) var fields: [FieldRule] = []

    /// A rule that cannot be read, and why.
    package struct Unreadable: Error, Sendable, Equatable {
        /// What is wrong, for people.
        package let message: String
    }

    /// Everything from `standard` on.
    package init(_ standard: Logger.Level = .info) {
        self.standard = standard
    }

    /// Everything from `standard` on, but for `rules`: each `LABEL=LEVEL`, such as
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
                throw Unreadable(message: "`\(rule)` names no label and no field")
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

    /// The label of what the libraries say that serve requests: of no interest below `notice`
    /// unless a rule asks for it.
    package static let requests = "timeline-gateway.requests"

    /// From which level on a label's records are logged.
    func level(of label: String) -> Logger.Level {
        var name = label[...]
        while true {
            if let level = labels[String(name)] { return level }
            guard let stop = name.lastIndex(of: ".") else { break }
            name = name[..<stop]
        }
        return label == Self.requests ? max(.notice, standard) : standard
    }

    /// The lowest level at which a label's records may have to be logged.
    ///
    /// - Parameter own: What the logger was told itself.
    func lowest(of label: String, own: Logger.Level?) -> Logger.Level {
        fields.reduce(own ?? level(of: label)) { min($0, $1.level) }
    }

    /// Whether a record is logged: a rule for one of its fields is stronger than that of its label,
    /// and of several the one that lets more through.
    ///
    /// - Parameter own: What the logger was told itself, which stands for its label's level.
    func lets(
        _ level: Logger.Level, label: String, own: Logger.Level?, fields texts: [String: String]
    ) -> Bool {
        let matching = fields.filter { texts[$0.field] == $0.value }.map(\.level).min()
        return level >= matching ?? own ?? self.level(of: label)
    }
}
