import CatalogModel
import Foundation
import GatewayCore
import WidgetModel

/// The merged layers of the configuration: flags over environment over file, with every fault
/// recorded.
package struct ConfigurationLayers {
    /// Environment variables that belong not to the gateway but to `timelinectl`.
    private static let foreignVariables: Set<String> = ["URL", "CA", "TOKEN", "APP"]
    private static let variablePrefix = "TIMELINE_GATEWAY_"
    /// The maximum size of a configuration file, in bytes.
    package static let bytesMax = 1024 * 1024
    /// The longest duration, in seconds: ten years.
    private static let secondsMax: Int64 = 3650 * 86_400

    /// The value of each option that is set, by key.
    private let values: [String: String]
    private let fileKeys: [String]
    /// The options that environment variables set.
    package let variables: [String]
    /// The file, if one was named.
    let file: String?
    /// The state of the file just before it was read.
    private let fileRead: FileWatch.Print?
    let openTelemetry: OpenTelemetryVariables
    /// Whether the document could not be read at all.
    let isUnreadable: Bool
    /// The files that may be read; `nil` for all.
    private let readable: Set<String>?
    /// The faults found so far.
    package private(set) var faults = Faults()

    /// Merges the layers: a named YAML or JSON file, or the `received` document in its place, the
    /// command line's values by key, and the process's environment.
    package init(
        file: String?, flags: [String: String], environment: [String: String],
        received: ReceivedConfiguration? = nil
    ) {
        var texts: [String: String] = [:]
        var faults = Faults()
        readable = received?.readable
        fileRead = file.flatMap { FileWatch.Print($0) }
        if let received {
            texts = Self.read(received.document, "the document", &faults)
        } else if let file {
            texts = Self.read(file, &faults)
        }
        isUnreadable = !faults.isEmpty
        for key in texts.keys.sorted() where ConfigurationSchema.option(for: key) == nil {
            faults.add(key, Self.unknown(key))
        }
        let known = Set(
            ConfigurationSchema.options.map { Self.variable($0.key) })
        for name in environment.keys.sorted() where name.hasPrefix(Self.variablePrefix) {
            let rest = String(name.dropFirst(Self.variablePrefix.count))
            guard !Self.foreignVariables.contains(rest), !known.contains(rest) else { continue }
            let hint = rest.nearest(of: known.sorted()).map {
                "; did you mean \(Self.variablePrefix)\($0)?"
            }
            faults.add(name, "is not a variable of the gateway\(hint ?? "")")
        }
        var variables: [String: String] = [:]
        for option in ConfigurationSchema.options where !option.key.contains("*") {
            let own = environment[Self.variablePrefix + Self.variable(option.key)]
            let common = OpenTelemetryVariables.options[option.key].flatMap {
                environment[$0]
            }
            if let text = own ?? common { variables[option.key] = text }
        }
        self.variables = variables.keys.sorted()
        values = flags.merging(variables) { flag, _ in flag }.merging(texts) { above, _ in above }
        fileKeys = texts.keys.sorted()
        openTelemetry = OpenTelemetryVariables(environment)
        self.file = file
        self.faults = faults
    }

    /// The state of the file just before it was read, and the present state of the files that it
    /// names.
    var filesRead: [String: FileWatch.Print?] {
        var prints: [String: FileWatch.Print?] = [:]
        for path in Self.files(values).values where mayRead(path) {
            prints[path] = .some(FileWatch.Print(path))
        }
        if let file { prints[file] = .some(fileRead) }
        return prints
    }

    /// Returns the files that options name, by option.
    static func files(_ texts: [String: String]) -> [String: String] {
        texts.filter { key, text in
            guard key != "data", !text.hasPrefix("https://"),
                let option = ConfigurationSchema.option(for: key)
            else { return false }
            if case .path = option.kind { return true }
            return false
        }
    }

    /// Returns whether a file that the configuration names may be read.
    func mayRead(_ path: String) -> Bool { readable?.contains(path) ?? true }

    /// Converts a key to a variable name: `tls.clientCA` to `TLS_CLIENT_CA`.
    static func variable(_ key: String) -> String {
        var result = ""
        var previous: Character = "."
        for character in key {
            if character == "." {
                result += "_"
            } else {
                if character.isUppercase, previous.isLowercase { result += "_" }
                result += character.uppercased()
            }
            previous = character
        }
        return result
    }

    private static func unknown(_ key: String) -> String {
        let names = ConfigurationSchema.options.map(\.key)
        let hint = key.nearest(of: names).map { "; did you mean `\($0)`?" } ?? ""
        return "is not an option\(hint)"
    }

    private static func read(_ file: String, _ faults: inout Faults) -> [String: String] {
        guard let data = FileManager.default.contents(atPath: file) else {
            faults.add("", "the file \(file) cannot be read")
            return [:]
        }
        return read(Array(data), "the file \(file)", &faults)
    }

    private static func read(
        _ bytes: [UInt8], _ name: String, _ faults: inout Faults
    ) -> [String: String] {
        guard bytes.count <= bytesMax, let text = String(validating: bytes, as: UTF8.self) else {
            faults.add("", "\(name) is not UTF-8 text of at most \(bytesMax) bytes")
            return [:]
        }
        var texts: [String: String] = [:]
        do throws(Faults) {
            // JSON is YAML: one reader for both.
            flatten(try JSONValue(yaml: text), at: "", into: &texts, &faults)
        } catch {
            for fault in error.list { faults.add(fault.place, "\(name) \(fault.message)") }
        }
        return texts
    }

    private static func flatten(
        _ value: JSONValue, at key: String, into texts: inout [String: String],
        _ faults: inout Faults
    ) {
        switch value {
        case .null: break
        case .object(let object):
            for member in object.members {
                flatten(
                    member.value, at: key.isEmpty ? member.name : "\(key).\(member.name)",
                    into: &texts, &faults)
            }
        // An empty list means the same as no list.
        case .array(let elements) where elements.isEmpty: break
        case .array(let elements):
            if elements.contains(where: { $0.objectValue != nil }) {
                for (index, element) in elements.enumerated() {
                    flatten(element, at: "\(key).\(index)", into: &texts, &faults)
                }
            } else {
                texts[key] = elements.compactMap { ParameterValue.text(of: $0) }
                    .joined(separator: ",")
            }
        default:
            if key.isEmpty {
                faults.add("", "the file must contain an object")
            } else {
                texts[key] = ParameterValue.text(of: value)
            }
        }
    }

    // MARK: Reading

    /// The list indices that the file has entries for.
    func places(of list: String) -> [Int] {
        Set(
            fileKeys.compactMap { key -> Int? in
                guard key.hasPrefix(list + ".") else { return nil }
                return key.dropFirst(list.count + 1).split(separator: ".").first.flatMap {
                    Int($0)
                }
            }
        ).sorted()
    }

    /// The text of every option that is set.
    var texts: [String: String] {
        var texts: [String: String] = [:]
        for option in ConfigurationSchema.options where !option.key.contains("*") {
            texts[option.key] = text(raw: option.key)
        }
        for key in fileKeys where texts[key] == nil { texts[key] = text(raw: key) }
        return texts
    }

    /// The text of an option, unchecked.
    func text(raw key: String) -> String? {
        values[key]
    }

    /// The text of an option, checked against its kind.
    mutating func text(_ key: String) -> String? {
        guard let text = text(raw: key) else { return nil }
        guard let option = ConfigurationSchema.option(for: key) else { return nil }
        switch option.kind {
        case .choice(let choices) where !choices.contains(text):
            faults.add(key, "`\(text)` must be one of \(choices.joined(separator: ", "))")
            return nil
        case .address where Address(text) == nil:
            faults.add(key, "`\(text)` must be HOST:PORT, with a port from 0 to 65535")
            return nil
        case .text, .path, .address, .choice, .flag, .number, .fraction, .duration, .rate, .texts:
            return text
        }
    }

    mutating func address(_ key: String) -> Address? { text(key).flatMap(Address.init) }

    mutating func flag(_ key: String) -> Bool? { value(key, "true or false") { Bool($0) } }

    mutating func number(_ key: String) -> Int? {
        guard case .number(let range) = ConfigurationSchema.option(for: key)?.kind else {
            return nil
        }
        return value(key, "a whole number from \(range.lowerBound) to \(range.upperBound)") {
            Int($0).flatMap { range.contains($0) ? $0 : nil }
        }
    }

    /// Reads a number from 0 to 1.
    mutating func fraction(_ key: String) -> Double? {
        value(key, "a number from 0 to 1") {
            Double($0).flatMap { (0...1).contains($0) ? $0 : nil }
        }
    }

    /// Reads a duration, in seconds.
    package mutating func seconds(_ key: String) -> Int64? {
        value(key, "a duration such as 90s, 15m, 1h or 7d") {
            DurationText.seconds($0).flatMap { (1...Self.secondsMax).contains($0) ? $0 : nil }
        }
    }

    /// Reads a rate, such as `100/1s burst 1000`.
    mutating func rate(_ key: String) -> TokenRate? {
        value(key, "a rate such as `100/1s` or `100/1s burst 1000`") { RateLimits.read($0) }
    }

    /// Reads a value; a text that is none is a fault.
    private mutating func value<Value>(
        _ key: String, _ expected: String, _ read: (String) -> Value?
    ) -> Value? {
        guard let text = text(key) else { return nil }
        let value = read(text)
        if value == nil { faults.add(key, "`\(text)` must be \(expected)") }
        return value
    }

    mutating func texts(_ key: String) -> [String]? {
        text(key)?.split(separator: ",").map { String($0.filter { $0 != " " }) }
    }

    /// Reads origins of web pages, as browsers send them (RFC 6454 section 6.2).
    mutating func origins(_ key: String) -> [String]? {
        let origins = texts(key)
        for origin in origins ?? [] {
            var parts = URLComponents()
            let found = URLComponents(string: origin)
            (parts.scheme, parts.host, parts.port) = (found?.scheme, found?.host, found?.port)
            let ownPort = ["http": 80, "https": 443][parts.scheme ?? ""]
            let isSerialized =
                parts.scheme != nil && parts.string == origin && origin == origin.lowercased()
                && !origin.contains("*") && parts.host?.isEmpty == false
                && (parts.port == nil || parts.port != ownPort)
            if !isSerialized {
                faults.add(
                    key,
                    "`\(origin)` must be an origin as browsers send it, such as "
                        + "https://www.example.com")
            }
        }
        return origins
    }

    mutating func required(_ key: String) -> String {
        if let text = text(key) { return text }
        if !faults.list.contains(where: { $0.place == key }) { faults.add(key, "is required") }
        return ""
    }

    mutating func fault(_ key: String, _ message: String) {
        faults.add(key, message)
    }
}
