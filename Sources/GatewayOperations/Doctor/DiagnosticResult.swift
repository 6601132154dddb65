import WidgetModel

/// The result of one check, in words for an operator.
package struct DiagnosticResult: Sendable, Equatable {
    /// The severity of a finding.
    package enum Level: String, Sendable {
        /// Everything is in order.
        case ok
        /// It works, at least for now.
        case warn
        /// It does not work, or users see errors.
        case fail
    }

    package let level: Level
    /// The subject of the check, as one or two words.
    package let subject: String
    package let what: String
    /// The remedy; empty if none is needed.
    package let remedy: String

    package init(_ level: Level, subject: String, what: String, remedy: String = "") {
        (self.level, self.subject, self.what, self.remedy) = (level, subject, what, remedy)
    }

    /// The finding as a document.
    package var json: JSONValue {
        [
            "level": .string(level.rawValue), "subject": .string(subject), "what": .string(what),
            "remedy": .string(remedy),
        ]
    }
}
