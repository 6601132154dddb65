import Foundation
import WidgetModel

/// A text for display, translated by the app's ``StringCatalog`` when it is read.
public struct LocalizedStringResource: Sendable, Hashable, ExpressibleByStringInterpolation,
    CustomStringConvertible
{
    /// The key in the table: the text itself, with a format such as `%@` for each value.
    public var key: String
    /// The table; `nil` for `Localizable`.
    public var table: String?
    private var values: [WidgetNode] = []
    private var fallback: String?

    /// Creates a text.
    public init(_ text: String) { key = text }

    /// Creates a text whose key is not its text in the developer's language.
    ///
    /// - Parameter comment: A note to translators, which is not kept.
    public init(
        _ key: StaticString, defaultValue: String, table: String? = nil,
        comment: StaticString? = nil
    ) {
        self.key = "\(key)"
        self.table = table
        fallback = defaultValue
    }

    /// Creates a text from a literal.
    public init(stringLiteral text: String) { key = text }

    /// Creates a text from a literal with values.
    public init(stringInterpolation text: StringInterpolation) {
        let hasValues = !text.values.isEmpty
        key = hasValues ? text.key : text.key.replacingOccurrences(of: "%%", with: "%")
        values = text.values
    }

    /// The text in the locale of the environment; in the developer's language where no
    /// translation is known.
    public var text: String { nodes.map(\.plain).joined() }

    /// The text.
    public var description: String { text }

    /// The text with its values as they are: a value may have a style, or move.
    var nodes: [WidgetNode] {
        let format =
            StringCatalog.current.format(of: key, in: table, for: StringCatalog.locale)
            ?? fallback ?? key
        return values.isEmpty ? [WidgetNode(.text(format))] : filled(format)
    }

    /// Returns a format with its places filled, `%@` or `%lld` in their order and `%2$@` by number.
    private func filled(_ format: String) -> [WidgetNode] {
        var nodes: [WidgetNode] = []
        var words = ""
        func endWords() {
            if !words.isEmpty { nodes.append(WidgetNode(.text(words))) }
            words = ""
        }
        var next = 0
        var rest = format[...]
        while let sign = rest.firstIndex(of: "%"),
            let end = rest[sign...].dropFirst().firstIndex(where: { "@%diufsxXgeaco".contains($0) })
        {
            words += rest[..<sign]
            let place = rest[sign..<end].dropFirst()
            rest = rest[end...].dropFirst()
            guard format[end] != "%" else {
                words += "%"
                continue
            }
            let number = place.split(separator: "$").first.flatMap { UInt8($0) }
            let index = place.contains("$") ? Int(number ?? 0) - 1 : next
            next += 1
            guard values.indices.contains(index) else { continue }
            let value = values[index]
            if case .text(let text) = value.content, value.style == WidgetStyle() {
                words += text
            } else {
                endWords()
                nodes.append(value)
            }
        }
        words += rest
        endWords()
        return nodes
    }

    /// A literal with values, as it is being read.
    public struct StringInterpolation: StringInterpolationProtocol {
        var key = ""
        var values: [WidgetNode] = []

        /// Creates an empty literal.
        public init(literalCapacity: Int, interpolationCount: Int) {}

        /// Appends a part of the literal.
        public mutating func appendLiteral(_ part: String) {
            key += part.replacingOccurrences(of: "%", with: "%%")
        }

        /// Appends a value. A text and an image stay what they are where a ``Text`` is drawn.
        public mutating func appendInterpolation<Value>(_ value: Value) {
            key += value is any FixedWidthInteger ? "%lld" : value is Double ? "%lf" : "%@"
            values.append((value as? any DrawnInText)?.nodeInText ?? WidgetNode(.text("\(value)")))
        }

        /// Appends a value in a format.
        public mutating func appendInterpolation<Format: FormatStyle>(
            _ value: Format.FormatInput, format: Format
        ) where Format.FormatOutput == String {
            appendInterpolation(format.locale(StringCatalog.locale).format(value))
        }
    }
}

/// A value inside a text that keeps its own drawing.
protocol DrawnInText {
    var nodeInText: WidgetNode { get }
}

/// A text for display, as views name it.
public typealias LocalizedStringKey = LocalizedStringResource
/// A text that is spoken or shown to a person.
public typealias IntentDialog = LocalizedStringResource

extension String {
    /// Creates the translation of a text.
    public init(localized text: LocalizedStringResource) { self = text.text }
}

/// The translations of an app's texts, read from string catalogs (`Localizable.xcstrings`).
public struct StringCatalog: Sendable {
    /// The formats by table, key and language.
    private var formats: [String: [String: [String: String]]] = [:]

    /// The translations for what is being drawn.
    @TaskLocal package static var current = StringCatalog()
    /// The locale of what is being drawn.
    @TaskLocal package static var locale = Locale(identifier: "en")

    /// Creates a catalog without translations.
    public init() {}

    /// Adds the content of an `.xcstrings` file. Of a plural, its form for other numbers is kept.
    ///
    /// - Parameter table: The name of the file without its extension.
    /// - Returns: Whether the content is a string catalog.
    public mutating func add(_ file: [UInt8], table: String = "Localizable") -> Bool {
        guard let strings = (try? JSONValue(parsing: file))?.objectValue?["strings"]?.objectValue
        else { return false }
        for entry in strings.members {
            let languages = entry.value.objectValue?["localizations"]?.objectValue?.members ?? []
            for language in languages {
                var unit = language.value.objectValue
                if let plural = unit?["variations"]?.objectValue?["plural"]?.objectValue {
                    unit = plural["other"]?.objectValue
                }
                formats[table, default: [:]][entry.name, default: [:]][language.name] =
                    unit?["stringUnit"]?.objectValue?["value"]?.stringValue
            }
        }
        return true
    }

    /// Calls a function whose texts are translated by this catalog.
    package func translating<Result>(_ body: () throws -> Result) rethrows -> Result {
        try Self.$current.withValue(self) { try body() }
    }

    /// Calls a function whose texts are translated by this catalog.
    package func translating<Result>(
        _ body: () async throws -> Result
    ) async rethrows -> Result {
        try await Self.$current.withValue(self) { try await body() }
    }

    /// Returns the format for a locale, or else for its language without script and region.
    func format(of key: String, in table: String?, for locale: Locale) -> String? {
        guard let languages = formats[table ?? "Localizable"]?[key] else { return nil }
        var name = locale.identifier.replacingOccurrences(of: "_", with: "-")
        while true {
            if let format = languages[name] { return format }
            guard let end = name.lastIndex(of: "-") else { return nil }
            name = String(name[..<end])
        }
    }
}
