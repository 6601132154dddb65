import Foundation

private typealias Value = WidgetStyle.Value

/// A text, or a date whose display updates without a new timeline. Texts are translated when they
/// are drawn, for the locale of the environment.
public struct Text: PrimitiveView, Sendable {
    /// The format of a date whose display updates over time.
    public typealias DateStyle = WidgetNode.DateStyle

    private enum Source: Sendable {
        case verbatim(String)
        case key(LocalizedStringResource)
        case date(Date, DateStyle)
        case formatted(@Sendable (Locale) -> String)
        case image(Image)
        case joined([Text])
    }

    private let source: Source
    private var style = WidgetStyle()

    private init(_ source: Source) { self.source = source }

    /// Creates a text that is not translated.
    @_disfavoredOverload
    public init(_ text: some StringProtocol) { self.init(.verbatim(String(text))) }

    /// Creates a text that is not translated.
    public init(verbatim text: String) { self.init(.verbatim(text)) }

    /// Creates a text that is translated by a table of the app's ``StringCatalog``.
    ///
    /// - Parameters:
    ///   - bundle: Ignored: the catalog belongs to the runtime.
    ///   - comment: A note to translators, which is not kept.
    public init(
        _ key: LocalizedStringKey, tableName: String? = nil, bundle: Bundle? = nil,
        comment: StaticString? = nil
    ) {
        var key = key
        if let tableName { key.table = tableName }
        self.init(.key(key))
    }

    /// Creates a text of an image, as large as the letters beside it.
    public init(_ image: Image) { self.init(.image(image)) }

    /// Creates a date whose display updates over time.
    public init(_ date: Date, style: DateStyle) { self.init(.date(date, style)) }

    /// Creates the times of day between which something takes place.
    public init(_ dates: ClosedRange<Date>) {
        self.init(
            .joined([
                Text(dates.lowerBound, style: .time), Text(verbatim: "–"),
                Text(dates.upperBound, style: .time),
            ]))
    }

    /// Creates the times of day between which something takes place.
    public init(_ interval: DateInterval) { self.init(interval.start...interval.end) }

    /// Creates a clock that runs between two dates while the widget is visible.
    ///
    /// - Parameter pauseTime: The date at which the clock stands still; `nil` for never.
    public init(
        timerInterval interval: ClosedRange<Date>, pauseTime: Date? = nil,
        countsDown: Bool = true, showsHours: Bool = true
    ) {
        self.init(.date(countsDown ? interval.upperBound : interval.lowerBound, .timer))
        style.live(interval, countsDown: countsDown)
        style[.livePause] = Value.length(pauseTime?.timeIntervalSince1970)
        style[.showsHours] = .flag(showsHours)
    }

    /// Creates a value in a format, for the locale of the environment.
    public init<Format: FormatStyle & Sendable>(_ input: Format.FormatInput, format: Format)
    where Format.FormatOutput == String, Format.FormatInput: Sendable {
        self.init(.formatted { format.locale($0).format(input) })
    }

    /// Joins two texts into one.
    public static func + (left: Text, right: Text) -> Text { Text(.joined([left, right])) }

    var nodes: [WidgetNode] { [node] }

    private var node: WidgetNode {
        switch source {
        case .verbatim(let text): WidgetNode(.text(text), style: style)
        case .key(let key): joined(key.nodes)
        case .date(let date, let format):
            // No archive has a date at the end of all time.
            WidgetNode(
                date.timeIntervalSince1970.isFinite ? .date(date, format) : .text("—"),
                style: style)
        case .formatted(let format):
            WidgetNode(.text(format(StringCatalog.locale)), style: style)
        case .image(let image): joined(image.nodes)
        case .joined(let texts): joined(texts.map(\.node))
        }
    }

    /// Returns parts as one text. A text of texts is one text.
    private func joined(_ parts: [WidgetNode]) -> WidgetNode {
        let parts = parts.flatMap { part -> [WidgetNode] in
            if case .stack(.text, let parts) = part.content, part.style == WidgetStyle() {
                return parts
            }
            return [part]
        }
        let isAlone = parts.count == 1 && parts[0].style == WidgetStyle()
        return WidgetNode(isAlone ? parts[0].content : .stack(.text, parts), style: style)
    }

    /// The text as a string, in which nothing moves.
    var plain: String { node.plain }

    private func with(_ change: (inout WidgetStyle) -> Void) -> Text {
        var text = self
        change(&text.style)
        return text
    }

    private func with(_ attribute: WidgetStyle.Attribute, _ value: Value?) -> Text {
        with { $0[attribute] = $0[attribute] ?? value }
    }
}

/// The modifiers after which a text is still a text, so that it can be joined with others.
extension Text {
    /// Sets the font.
    public func font(_ font: Font?) -> Text { with { $0.font = $0.font ?? font } }
    /// Sets the color or gradient.
    public func foregroundStyle(_ style: some ShapeStyle) -> Text { with { $0.paint(style.paint) } }
    /// Sets the color.
    public func foregroundColor(_ color: Color?) -> Text {
        with { if let color { $0.paint(.color(color)) } }
    }
    /// Shows the text in bold.
    public func bold(_ isActive: Bool = true) -> Text { with(.bold, .flag(isActive)) }
    /// Slants the letters.
    public func italic(_ isActive: Bool = true) -> Text { with(.italic, .flag(isActive)) }
    /// Underlines the text.
    public func underline(_ isActive: Bool = true) -> Text { with(.underline, .flag(isActive)) }
    /// Draws a line through the text.
    public func strikethrough(_ isActive: Bool = true) -> Text {
        with(.strikethrough, .flag(isActive))
    }
    /// Gives all digits the same width.
    public func monospacedDigit() -> Text { with(.monospacedDigits, .flag(true)) }
    /// Sets the weight of the font; `nil` for its own.
    public func fontWeight(_ weight: Font.Weight?) -> Text {
        with(.fontWeight, weight.map { .text($0.rawValue) })
    }
    /// Adds space between letters, in points.
    public func kerning(_ space: Double) -> Text { with(.kerning, Value.length(space)) }
    /// Adds space after each letter, in points.
    public func tracking(_ space: Double) -> Text { with(.tracking, Value.length(space)) }
    /// Lifts the text above its line, in points.
    public func baselineOffset(_ offset: Double) -> Text {
        with(.baselineOffset, Value.length(offset))
    }
}

extension WidgetNode {
    /// The text of the node as a string, in which nothing moves.
    var plain: String {
        switch content {
        case .text(let text): text
        // No calendar has dates that are further away.
        case .date(let date, let style) where abs(date.timeIntervalSince1970) < 200_000_000_000:
            date.formatted(
                Date.FormatStyle(
                    date: style == .date ? .long : .omitted,
                    time: style == .date ? .omitted : .shortened, locale: StringCatalog.locale))
        default: parts.map(\.plain).joined()
        }
    }
}

extension WidgetStyle {
    /// Sets the dates between which a node counts.
    mutating func live(_ interval: ClosedRange<Date>, countsDown: Bool) {
        self[.liveFrom] = Value.length(interval.lowerBound.timeIntervalSince1970)
        self[.liveTo] = Value.length(interval.upperBound.timeIntervalSince1970)
        self[.countsDown] = .flag(countsDown)
    }
}

extension LocalizedStringResource.StringInterpolation {
    /// Appends a date whose display updates over time.
    public mutating func appendInterpolation(_ date: Date, style: Text.DateStyle) {
        appendInterpolation(Text(date, style: style))
    }
}

extension Text: DrawnInText {
    var nodeInText: WidgetNode { drawnAsOne }
}

extension Image: DrawnInText {
    var nodeInText: WidgetNode { Text(self).drawnAsOne }
}
