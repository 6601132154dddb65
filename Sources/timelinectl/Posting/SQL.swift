enum SQL {
    /// Returns a name that SQL reads as it is.
    static func identifier(_ name: String) -> String { "\"" + doubling("\"", in: name) + "\"" }

    /// Returns the name of a table in a schema.
    static func name(_ schema: String, _ table: String) -> String {
        "\(identifier(schema)).\(identifier(table))"
    }

    /// Returns a text that SQL reads as it is, whatever `standard_conforming_strings` says.
    static func literal(_ text: String) -> String {
        "E'" + doubling("\\", in: doubling("'", in: text)) + "'"
    }

    /// Works on scalars: a quote with a combining mark behind it is another character.
    private static func doubling(_ mark: Unicode.Scalar, in text: String) -> String {
        var doubled = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            if scalar == mark { doubled.append(mark) }
            doubled.append(scalar)
        }
        return String(doubled)
    }
}
