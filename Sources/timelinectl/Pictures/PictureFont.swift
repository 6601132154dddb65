import TimelineRuntime

/// A font with the widths of its characters, by which texts are broken into lines. Widths are those
/// of a common sans serif; a viewer's own font may differ a little.
struct PictureFont {
    /// The size in points, 1 to 1,000.
    var size: Double
    private let weight: Int
    private let design: Font.Design
    private let attributes: String

    /// Creates the font that `platform` has for an app's style. A Mac has smaller ones, but shows
    /// an iPhone's widget in those of the iPhone (article "Preparing widgets for additional
    /// platforms, contexts, and appearances", "Verify font sizes in macOS").
    init(_ style: WidgetStyle, on platform: WidgetDevice.Platform, typeSize: DynamicTypeSize) {
        let font = style.font
        let role = font?.textStyle ?? .body
        let chosen = style.text(.dynamicTypeSize).flatMap(DynamicTypeSize.init(rawValue:))
        let place = DynamicTypeSize.allCases.firstIndex(of: chosen ?? typeSize) ?? 3
        let scale = [14, 15, 16, 17, 19, 21, 23, 28, 33, 40, 47, 53][place] / 17.0
        let phone = Self.sizes[role] ?? 17
        let mac = max(10, (phone * 13 / 17).rounded())
        // A font that is given by its size does not follow the person's choice.
        size = min(max(font?.size ?? (platform == .macOS ? mac : phone * scale), 1), 1_000)
        let named = style.text(.fontWeight).flatMap(Font.Weight.init) ?? font?.weight
        let stated = named.flatMap { Self.weights[$0] } ?? (role == .headline ? 600 : 400)
        weight = style.isOn(.bold) ? max(stated, 700) : stated
        design = style.text(.fontDesign).flatMap(Font.Design.init) ?? font?.design ?? .default
        var svg = " font-weight=\"\(weight)\""
        if design == .monospaced { svg += " font-family=\"monospace\"" }
        if design == .serif { svg += " font-family=\"serif\"" }
        if style.isOn(.italic) || font?.isItalic ?? false { svg += " font-style=\"italic\"" }
        let line = style.isOn(.strikethrough) ? "line-through" : "underline"
        let hasLine = style.isOn(.strikethrough) || style.isOn(.underline)
        attributes = hasLine ? svg + " text-decoration=\"\(line)\"" : svg
    }

    var svg: String { Picture.attributes(["font-size": size]) + attributes }

    var lineHeight: Double { size * 1.2 }

    func width(of text: some StringProtocol) -> Double {
        let units = text.reduce(0) { $0 + advance(of: $1) }
        return Double(units) / 1_000 * size * (weight >= 600 ? 1.07 : 1)
    }

    private func advance(of character: Character) -> Int {
        let place = Int(character.asciiValue ?? 0) - 32
        guard design != .monospaced, Self.advances.indices.contains(place) else {
            return character.columns == 2 ? 1_000 : 600
        }
        return Self.advances[place]
    }

    /// Breaks a text into lines no wider than `width`, `count` at most: at spaces, and in words
    /// that are wider than a line. Returns whether a part of it is left out.
    func lines(of text: String, width: Double, count: Int) -> (lines: [String], isCut: Bool) {
        var lines: [String] = []
        func append(_ line: Substring, isFull: Bool) {
            var line = line
            while isFull, line.last == " " { line.removeLast() }
            lines.append(String(line))
        }
        // No widget has room for more.
        let start = String(text.unicodeScalars.prefix(2_000))
        for paragraph in TextBlock(start).lines where lines.count <= count {
            var (first, space, used) = (paragraph.startIndex, paragraph.startIndex, 0.0)
            for index in paragraph.indices {
                used += self.width(of: paragraph[index...index])
                if paragraph[index] == " " {
                    space = index
                } else if used > width, index > first {
                    let end = space > first ? space : index
                    append(paragraph[first..<end], isFull: true)
                    first = end == space ? paragraph.index(after: end) : end
                    used = self.width(of: paragraph[first...index])
                }
            }
            append(paragraph[first...], isFull: used > width)
        }
        guard lines.count > count else { return (lines, false) }
        lines.removeSubrange(count...)
        var last = lines.removeLast()
        while !last.isEmpty, self.width(of: last + "…") > width { last.removeLast() }
        return (lines + [last + "…"], true)
    }

    // In thousandths of the size, from the space to the tilde.
    private static let advances = [
        278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
        556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
        1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
        667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
        333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
        556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
    ]
    private static let weights: [Font.Weight: Int] = [
        .ultraLight: 100, .thin: 200, .light: 300, .regular: 400, .medium: 500, .semibold: 600,
        .bold: 700, .heavy: 800, .black: 900,
    ]
    // In points, from the table of Apple's design guidelines. A Mac's are nearly 13/17 of these.
    private static let sizes: [Font.TextStyle: Double] = [
        .largeTitle: 34, .title: 28, .title2: 22, .title3: 20, .headline: 17, .body: 17,
        .callout: 16, .subheadline: 15, .footnote: 13, .caption: 12, .caption2: 11,
    ]
}
