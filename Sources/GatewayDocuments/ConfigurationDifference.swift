/// The options in which two configurations differ.
package struct ConfigurationDifference: Codable, Sendable {
    package var changes: [ChangedOption] = []

    package init(changes: [ChangedOption]) { self.changes = changes }
}

/// An option whose value, or the file that it names, differs.
package struct ChangedOption: Codable, Sendable {
    package var option = ""
    package var takesEffect = ""
    /// `changed` if only the contents of the file differ.
    package var contents: String?
    package var before: String?
    package var after: String?

    package init() {}

    /// Writes values as `null` for the default; without values if only the contents differ.
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(option, forKey: .option)
        try container.encode(takesEffect, forKey: .takesEffect)
        try container.encodeIfPresent(contents, forKey: .contents)
        if contents == nil {
            try container.encode(before, forKey: .before)
            try container.encode(after, forKey: .after)
        }
    }
}
