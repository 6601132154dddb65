import Foundation
import TimelineRuntime

/// A widget in one context, drawn as SVG without any code of the app. Equal content, contexts and
/// settings give equal pictures.
struct Picture {
    /// The context for people.
    let caption: String
    let svg: String
    /// Text that is equal for pictures of equal content, whatever their dates show now.
    let content: String

    init(
        _ title: String, of node: WidgetNode, with traits: WidgetTraits = WidgetTraits(),
        in environment: WidgetEnvironment, _ settings: PictureSettings
    ) {
        let size = PictureSize(
            width: Double(environment.displaySize.width),
            height: Double(environment.displaySize.height))
        let layout = PictureLayout(environment, settings)
        let shown = environment.widgetFamily == .accessoryInline ? node.inline : node
        let margins =
            traits.disablesContentMargins ? EdgeInsets() : environment.widgetContentMargins
        let content = layout.padded(margins, size) {
            layout.aligned(layout.part(shown, in: $0, .init()), in: $0, nil)
        }
        let background = layout.background(of: node, in: size, .init())
        let (reasons, scale) = (environment.redactionReasons, environment.scale)
        let words: [String?] = [
            environment.location.rawValue, environment.widgetRenderingMode.rawValue,
            environment.colorScheme.rawValue, environment.isLuminanceReduced ? "Always On" : nil,
            environment.isTintedRed ? "low light" : nil,
            environment.levelOfDetail == .simplified ? "from afar" : nil,
            reasons.contains(.privacy) ? "locked" : nil,
            reasons.contains(.placeholder) ? "placeholder" : nil,
            settings.isPending ? "update under way" : nil,
            "\(Self.number(size.width)) × \(Self.number(size.height)) pt",
            scale == 1 ? nil : "scaled by \(Self.number(scale))",
            content.isCut ? "does not fit" : nil,
        ]
        caption = words.compactMap(\.self).joined(separator: ", ")
        self.content = [
            caption, environment.locale.identifier, "\(environment.dynamicTypeSize)", "\(margins)",
            node.json.text,
        ].joined(separator: " ")
        let radius =
            switch environment.widgetFamily {
            case .accessoryCircular, .accessoryCorner: min(size.width, size.height) / 2
            case .accessoryInline, .accessoryRectangular: 4.0
            default: min(22.0, size.height / 2)
            }
        func box(_ ink: Ink?) -> String {
            ink.map { layout.element(.roundedRectangle, radius, in: size, $0.attributes()) } ?? ""
        }
        let outline = layout.define("clipPath", "", box(.white))
        let definitions = layout.definitions.sorted { $0.key < $1.key }.map(\.value).joined()
        // In points around the widget.
        let margin = 12.0
        let whole = Self.attributes([
            "width": size.width * scale + 2 * margin, "height": size.height * scale + 2 * margin,
        ])
        svg = """
            <svg xmlns="http://www.w3.org/2000/svg"\(whole) role="img" xml:space="preserve" \
            font-family="Inter, Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif">
            <title>\(Self.escaped("\(title), \(caption)"))</title>
            <defs>\(definitions)</defs>
            <rect\(whole) \(layout.backdrop.attributes())/>
            <g transform="translate(\(margin) \(margin)) scale(\(Self.number(scale)))" \
            opacity="\(environment.isLuminanceReduced ? "0.55" : "1")">
            <g class="widget" clip-path="\(outline)">
            <g class="background">\(box(layout.plate))\(background.svg)</g>
            <g class="content">\(content.svg)</g>
            </g></g></svg>
            """
    }

    /// Returns attributes of SVG for lengths, each after a space.
    static func attributes(_ lengths: KeyValuePairs<String, Double>) -> String {
        lengths.map { " \($0.key)=\"\(number($0.value))\"" }.joined()
    }

    /// Returns a length as SVG has it, rounded to a hundredth.
    static func number(_ value: Double) -> String {
        guard value.isFinite, abs(value) < 1_000_000 else { return "0" }
        let rounded = (value * 100).rounded() / 100
        return rounded == rounded.rounded() ? String(Int(rounded)) : String(rounded)
    }

    /// Returns a text for the inside of an element or of an attribute in double quotes.
    static func escaped(_ text: String) -> String {
        // The last two are no characters of XML.
        let names: [Unicode.Scalar: String] = [
            "&": "&amp;", "<": "&lt;", ">": "&gt;", "\"": "&quot;", "\u{FFFE}": "", "\u{FFFF}": "",
        ]
        return TextBlock.line(text).unicodeScalars.map { names[$0] ?? String($0) }.joined()
    }
}

extension WidgetEnvironment {
    var isRightToLeft: Bool { locale.language.characterDirection == .rightToLeft }
}

extension WidgetNode {
    /// The content of the inline family: the first image and the first text, on one line.
    fileprivate var inline: WidgetNode {
        func leaves(_ node: WidgetNode) -> [WidgetNode] {
            switch node.content {
            case _ where node.marks.contains(.containerBackground): []
            case .text, .date, .redacted, .image, .stack(.text, _): [node]
            default: node.parts.flatMap(leaves)
            }
        }
        let all = leaves(self)
        let image = all.first { if case .image = $0.content { true } else { false } }
        let text = all.first { if case .image = $0.content { false } else { true } }
        return WidgetNode(.stack(.horizontal, [image, text].compactMap(\.self)))
    }
}
