import GatewayOperations
import Logging
import WidgetModel

/// Writes a record as a line of the log.
extension LogFormat {
    struct Record {
        /// RFC 3339.
        let time: String
        let level: Logger.Level
        let label: String
        let message: String
        /// Ordered by name; secrets are masked already.
        let fields: [(name: String, text: String)]
    }

    /// The line with its newline.
    func line(_ record: Record) -> String {
        switch self {
        case .logfmt:
            var line = "time=\(record.time) level=\(record.level) label=\(Self.word(record.label))"
            line += " message=\(Self.word(record.message))"
            for field in record.fields {
                line += " \(Self.name(field.name))=\(Self.word(field.text))"
            }
            return line + "\n"
        case .json:
            var object: JSONObject = [
                "time": .string(record.time), "level": .string(record.level.rawValue),
                "label": .string(record.label), "message": .string(record.message),
            ]
            for field in record.fields {
                // A record's own members are not overwritten.
                let name = object[field.name] == nil ? field.name : field.name + "_"
                object[name] = .string(field.text)
            }
            return JSONValue.object(object).text + "\n"
        }
    }

    /// A value, quoted unless it is one plain word.
    private static func word(_ text: String) -> String {
        let isPlain = text.utf8.allSatisfy { $0 > 0x20 && $0 != 0x22 && $0 != 0x3D && $0 < 0x7F }
        guard text.isEmpty || !isPlain else { return text }
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case _ where scalar.properties.generalCategory == .control: result += "\u{FFFD}"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }

    /// A name without the characters that would end it.
    private static func name(_ text: String) -> String {
        String(text.unicodeScalars.filter { $0.value > 0x20 && $0 != "=" && $0 != "\"" })
    }
}
