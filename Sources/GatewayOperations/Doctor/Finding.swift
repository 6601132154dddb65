import GatewayEngine
import WidgetModel

/// One thing that was looked at, in words for an operator.
package struct Finding: Sendable, Equatable {
    /// How it is.
    package enum Level: String, Sendable {
        /// As it should be.
        case ok
        /// It works, or works for now.
        case warn
        /// It does not work, or people see something wrong.
        case fail
    }

    /// How it is.
    package let level: Level
    /// What was looked at, in a word or two.
    package let subject: String
    /// What was found.
    package let what: String
    /// What to do about it; empty where there is nothing to do.
    package let remedy: String

    /// A finding.
    package init(_ level: Level, _ subject: String, _ what: String, _ remedy: String = "") {
        (self.level, self.subject, self.what, self.remedy) = (level, subject, what, remedy)
    }

    /// As a document.
    package var json: JSONValue {
        [
            "level": .string(level.rawValue), "subject": .string(subject), "what": .string(what),
            "remedy": .string(remedy),
        ]
    }
}
