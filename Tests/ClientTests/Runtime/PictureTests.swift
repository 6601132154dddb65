import Foundation
import FoundationXML
import GatewayTestSupport
import Testing
import WidgetModel

@testable import TimelineRuntime
@testable import WidgetViews
@testable import timelinectl

/// A view with several colors, one of them an accent.
private struct HarborView: View {
    var body: some View {
        VStack {
            Image(systemName: "bolt.fill").widgetAccentable()
            Text("Northern ferry & \"outer\" islands <late>").foregroundStyle(.red)
            Gauge(value: 0.4) { Text("load") }.tint(.orange)
            Toggle(isOn: true, intent: TapIntent("a")) { Text("lit") }.toggleStyle(.switch)
        }
        .containerBackground(for: .widget) { Color("sea") }
    }
}

/// The elements of a picture, at their places in the widget.
private final class Elements: NSObject, XMLParserDelegate {
    struct Element {
        let name: String
        let attributes: [String: String]
        /// `defs`, `background` or `content`; empty outside of them.
        let layer: String
        let x: Double
        let y: Double

        func number(_ name: String) -> Double { attributes[name].flatMap { Double($0) } ?? 0 }
    }

    private(set) var all: [Element] = []
    private(set) var texts: [String] = []
    private var isInText = false
    private var places: [(layer: String, x: Double, y: Double)] = [("", 0, 0)]

    /// - Throws: When the document is not well-formed.
    init(_ document: String) throws {
        super.init()
        let parser = XMLParser(data: Data(document.utf8))
        parser.delegate = self
        try #require(parser.parse(), "\(document)")
    }

    func parser(
        _ parser: XMLParser, didStartElement name: String, namespaceURI: String?,
        qualifiedName: String?, attributes: [String: String]
    ) {
        var place = places.last ?? ("", 0, 0)
        let layer = name == "defs" ? name : attributes["class"]
        let transform = attributes["transform"] ?? ""
        if transform.hasPrefix("translate(") {
            let numbers = transform.dropFirst(10).prefix { $0 != ")" }.split(separator: " ")
            place.x += Double(numbers[0]) ?? 0
            place.y += Double(numbers[1]) ?? 0
        }
        if let layer { place = (layer, 0, 0) }
        places.append(place)
        isInText = name == "text"
        if isInText { texts.append("") }
        all.append(
            Element(
                name: name, attributes: attributes, layer: place.layer, x: place.x, y: place.y))
    }

    func parser(_ parser: XMLParser, foundCharacters text: String) {
        if isInText { texts[texts.count - 1] += text }
    }

    func parser(
        _ parser: XMLParser, didEndElement name: String, namespaceURI: String?,
        qualifiedName: String?
    ) {
        places.removeLast()
        isInText = false
    }

    func named(_ name: String, in layer: String = "content") -> [Element] {
        all.filter { $0.name == name && $0.layer == layer }
    }

    /// The colors of what is drawn.
    var colors: Set<String> {
        let names = ["fill", "stroke", "stop-color"]
        return Set(
            all.filter { $0.layer == "content" || $0.name == "stop" }
                .flatMap { element in names.compactMap { element.attributes[$0] } }
                .filter { $0.hasPrefix("#") })
    }

    func expectInside(_ size: CGSize, _ comment: String) {
        for one in all where ["content", "background"].contains(one.layer) {
            let (across, down) = (one.number("rx"), one.number("ry"))
            let boxes: [String: (x: Double, y: Double, width: Double, height: Double)] = [
                "rect": (0, 0, one.number("width"), one.number("height")),
                "text": (one.number("x"), one.number("y"), 0, 0),
                "ellipse": (
                    one.number("cx") - across, one.number("cy") - down, 2 * across, 2 * down
                ),
            ]
            // Without an area, nothing of it is seen.
            guard let box = boxes[one.name],
                one.name == "text" || (box.width > 0 && box.height > 0)
            else { continue }
            let (left, top) = (one.x + box.x, one.y + box.y)
            // Lengths are rounded to a hundredth at each level.
            let isInside =
                left > -0.2 && top > -0.2 && left + box.width < Double(size.width) + 0.2
                && top + box.height < Double(size.height) + 0.2
            #expect(isInside, "\(one) of \(comment)")
        }
    }
}

@Suite(.timeLimit(.minutes(30))) struct PictureTests {
    private var settings: PictureSettings {
        var settings = PictureSettings()
        settings.now = Date(timeIntervalSince1970: 1_769_860_000)
        settings.timeZone = .gmt
        return settings
    }

    private func environment(
        _ family: WidgetFamily = .systemSmall, at location: WidgetLocation = .homeScreen,
        on platform: WidgetDevice.Platform = .iOS, _ state: WidgetDeviceState = .init()
    ) throws -> WidgetEnvironment {
        let device = WidgetDevice(platform)
        return try PictureSizes.rules(on: device).environment(
            of: WidgetInfo(kind: "k", family: family), with: WidgetTraits(), at: location,
            on: device, state: state)
    }

    private func picture(
        _ environment: WidgetEnvironment, _ settings: PictureSettings? = nil,
        @ViewBuilder _ view: () -> some View
    ) -> Picture {
        Picture("k", of: environment.draw(view), in: environment, settings ?? self.settings)
    }

    private func harbor(
        _ environment: WidgetEnvironment, _ settings: PictureSettings? = nil
    ) -> Picture {
        picture(environment, settings) { HarborView() }
    }

    private func elements(
        _ environment: WidgetEnvironment? = nil, @ViewBuilder _ view: () -> some View
    ) throws -> Elements {
        try Elements(picture(environment ?? self.environment(.systemLarge), nil, view).svg)
    }

    @Test func whereverAWidgetCanBeItsPictureStaysInsideItsBox() throws {
        var (drawn, generator) = (0, SplitMix64(seed: 1))
        for family in Articles.families {
            for platform in WidgetDevice.Platform.allCases {
                let device = WidgetDevice(platform)
                let environments = PictureSizes.rules(on: device).drawnEnvironments(
                    of: WidgetInfo(kind: "k", family: family), with: WidgetTraits(), on: device)
                for var environment in environments {
                    drawn += 1
                    let size = environment.displaySize
                    let svg = harbor(environment).svg
                    let elements = try Elements(svg)
                    elements.expectInside(size, "\(environment)")
                    #expect(!elements.colors.isEmpty, "\(environment)")
                    #expect(
                        elements.all.first?.attributes["width"]
                            == Picture.number(Double(size.width) * environment.scale + 24))
                    let scale = Picture.number(environment.scale)
                    #expect(svg.contains(" scale(\(scale))\" opacity"), "\(environment)")
                    environment.locale = Locale(identifier: generator.pick(["en_US", "ar"]))
                    environment.dynamicTypeSize = generator.pick(DynamicTypeSize.allCases)
                    var settings = self.settings
                    settings.isPending = generator.happens(50)
                    let node = Self.node(&generator, depth: 5)
                    let picture = Picture("k", of: node, in: environment, settings)
                    try Elements(picture.svg).expectInside(size, "\(node)")
                }
            }
        }
        #expect(drawn > 200)
        #expect(try environment(at: .standBy).scale == 340.0 / 158)
    }

    private static func node(_ generator: inout SplitMix64, depth: Int) -> WidgetNode {
        let text = generator.pick(["", "a", "some words", "Länge\u{0}\u{202E}🦔橋"])
        var outline = Figure(generator.pick([.circle, .capsule, .divider, .roundedRectangle]))
        if generator.happens(50) { (outline.lineWidth, outline.trim) = (3, [0.2, 0.7]) }
        let leaves: [WidgetNode.Content] = [
            .text(text), .image(text), .image("bolt"), .spacer, .redacted, .color(.red),
            .date(.distantFuture, .timer), .shape(outline),
        ]
        var node = WidgetNode(generator.pick(leaves))
        if depth > 0, generator.happens(80) {
            var parts: [WidgetNode] = []
            for _ in 0...generator.below(4) {
                parts.append(Self.node(&generator, depth: depth - 1))
            }
            let (label, call) = (parts[0], IntentCall(intent: "i", parameters: [:]))
            let contents: [WidgetNode.Content] =
                WidgetNode.Axis.allCases.map { .stack($0, parts) } + [
                    .stack(.horizontal, parts), .stack(.vertical, parts),
                    .gauge(0.3, label: label), .button(call, label: label),
                    .gauge(0.7, label: WidgetNode(.stack(.gaugeLabels, parts))),
                    .toggle(true, call, label: label), .link("u", label: label),
                    .styledToggle(false, call, on: label, off: label),
                ]
            node = WidgetNode(generator.pick(contents))
        }
        let length = generator.pick([-1e300, -8, 0, 3, 20, 1e300])
        if generator.happens(30) { node.style.padding = EdgeInsets(top: length, leading: length) }
        if generator.happens(30) { node.style.spacing = length }
        if generator.happens(30) { node.style.font = .system(size: abs(length)) }
        if generator.happens(20) { node.style.toggleStyle = generator.pick([.switch, .checkbox]) }
        if generator.happens(20) { node.marks.insert(.invalidatable) }
        if generator.happens(5) { node.marks.insert(.containerBackground) }
        let lengths: [WidgetStyle.Attribute] = [
            .width, .height, .minWidth, .maxWidth, .maxHeight, .lineLimit, .minimumScaleFactor,
            .gridColumns, .zIndex, .sizingPart, .opacity,
        ]
        for attribute in lengths where generator.happens(8) {
            node.style[attribute] = generator.pick([.number(length), .infinity, .flag(true)])
        }
        if generator.happens(10) { node.style[.clip] = .text("circle") }
        return node
    }

    @Test func aLockedDeviceShowsABoxForWhatIsHidden() throws {
        let hidden = SensitiveContentSettings(showsOnLockScreen: false, showsInAlwaysOn: false)
        let locked = WidgetDeviceState(lock: .lockedWithPasscode, sensitiveContent: hidden)
        func drawn(_ state: WidgetDeviceState) throws -> Elements {
            try elements(environment(at: .standBy, state)) { Text("secret").privacySensitive() }
        }
        #expect(try drawn(.init()).texts == ["secret"])
        #expect(try drawn(locked).texts.isEmpty)
        #expect(try drawn(locked).named("rect").map { $0.number("height") } == [17])
    }

    @Test func theAccentedModeHasTwoColorsAndOthersOne() throws {
        var tinted = settings
        tinted.tint = Ink(rgb: 0x12AB34)
        func colors(_ location: WidgetLocation, _ state: WidgetDeviceState) throws -> Set<String> {
            let elements = try Elements(harbor(environment(at: location, state), tinted).svg)
            let plates = location == .standBy ? 0 : 1
            #expect(elements.named("rect", in: "background").count == plates, "only the system's")
            return elements.colors
        }
        let accented = WidgetDeviceState(renderingMode: .accented)
        #expect(try colors(.homeScreen, accented) == ["#ffffff", "#12ab34"])
        let home = try environment(at: .homeScreen, accented)
        func image(_ mode: Image.AccentedRenderingMode) throws -> Set<String> {
            let image = Image(systemName: "star").widgetAccentedRenderingMode(mode)
            return try Elements(picture(home, tinted) { image.foregroundStyle(.red) }.svg).colors
        }
        #expect(try image(.accented) == ["#12ab34"])
        #expect(try image(.desaturated) == ["#ffffff"])
        #expect(try image(.fullColor) == ["#ff453a"], "the red of dark widgets")
        let vibrant = WidgetDeviceState(renderingMode: .vibrant)
        #expect(try colors(.standBy, vibrant) == ["#12ab34"])
        func strength(_ color: Color) throws -> Double {
            let text = Text("a").foregroundStyle(color)
            return try elements(environment(at: .standBy, vibrant)) { text }
                .named("text")[0].number("fill-opacity")
        }
        #expect(try strength(.gray) > strength(.black), "what is dark is weak")
        #expect(try colors(.standBy, WidgetDeviceState(isLowLight: true)) == ["#ff3b30"])
        let own = try Elements(harbor(environment(.systemLarge), tinted).svg)
        #expect(own.colors.count > 3 && own.named("rect", in: "background").count == 2)
    }

    @Test func marginsAreLeftOutWhereTheWidgetSaysSo() throws {
        let environment = try environment()
        let node = environment.draw { Color.red }
        var traits = WidgetTraits()
        func width() throws -> Double? {
            let picture = Picture("k", of: node, with: traits, in: environment, settings)
            return try Elements(picture.svg).named("rect").first?.number("width")
        }
        #expect(try width() == 126)
        traits.disablesContentMargins = true
        #expect(try width() == 158)
    }

    @Test func fontsFollowThePersonAndTheDevice() throws {
        func size(
            _ place: WidgetLocation, _ platform: WidgetDevice.Platform, _ type: DynamicTypeSize
        ) throws -> Double? {
            var environment = try environment(at: place, on: platform)
            environment.dynamicTypeSize = type
            return try elements(environment) { Text("a") }.named("text").first?.number("font-size")
        }
        #expect(try size(.homeScreen, .iOS, .large) == 17)
        #expect(try size(.homeScreen, .iOS, .accessibility1) == 28)
        #expect(try size(.desktop, .macOS, .large) == 13)
        #expect(try size(.iPhoneWidgetsOnMac, .iOS, .large) == 17)
        let styled = try elements {
            Text("a").font(.title).fontWeight(.bold).fontDesign(.serif).italic().underline()
        }
        let attributes = try #require(styled.named("text").first).attributes
        #expect(attributes["font-size"] == "28" && attributes["font-weight"] == "700")
        #expect(attributes["font-family"] == "serif" && attributes["font-style"] == "italic")
        #expect(attributes["text-decoration"] == "underline")
    }

    @Test func theLanguageDecidesDatesAndDirection() throws {
        let start = Date(timeIntervalSince1970: 1_769_860_800)
        func drawn(_ locale: String) throws -> Elements {
            var environment = try environment(.systemLarge)
            environment.locale = Locale(identifier: locale)
            return try elements(environment) {
                HStack {
                    Text(start, style: .date)
                    Spacer()
                }
            }
        }
        #expect(try drawn("de_DE").texts == ["31. Januar 2026"])
        let left = try #require(try drawn("en_US").named("text").first)
        let right = try #require(try drawn("ar").named("text").first)
        #expect(right.attributes["text-anchor"] == "end" && left.x < right.x)
    }

    @Test func datesCountFromTheMomentThatIsShown() throws {
        let now = settings.now
        func shown(_ text: Text) throws -> String { try elements { text }.texts.joined() }
        #expect(try shown(Text(now + 90, style: .timer)) == "1:30")
        #expect(try shown(Text(timerInterval: now - 60...now + 30)) == "0:30")
        #expect(try shown(Text(timerInterval: now - 60...now + 30, countsDown: false)) == "1:00")
        #expect(try shown(Text(timerInterval: now - 60...now - 30)) == "0:00", "it has ended")
        #expect(try shown(Text(timerInterval: now - 60...now + 30, pauseTime: now - 5)) == "0:35")
        let ahead = try shown(Text(now + 7_200, style: .offset))
        #expect(ahead.hasPrefix("+2") && !ahead.contains(":"))
        #expect(try shown(Text(now - 7_200, style: .offset)).hasPrefix("-2"))
        // Nobody alive today has seen the first, and no calendar has the last.
        let dates = [-3e9, 1e300].map { Date(timeIntervalSince1970: $0) }
        #expect(try shown(Text(dates[0], style: .date)) == "December 7, 1874")
        #expect(try shown(Text(dates[1], style: .date)) == "—")
    }

    @Test func anUpdateUnderWayIsMarkedWhereTheAppSaysSo() throws {
        var pending = settings
        pending.isPending = true
        let environment = try self.environment(.systemLarge)
        func isMarked(_ settings: PictureSettings, _ view: some View) -> Bool {
            picture(environment, settings) { view }.svg.contains("opacity=\"0.4\"")
        }
        #expect(!isMarked(settings, Text("a").invalidatableContent()))
        #expect(!isMarked(pending, Text("a")))
        #expect(isMarked(pending, Text("a").invalidatableContent()))
        #expect(isMarked(settings, Text("a").redacted(reason: .invalidated)))
    }

    @Test func textsBreakIntoLinesThatFit() {
        let font = PictureFont(WidgetStyle(), on: .iOS, typeSize: .large)
        let (lines, isCut) = font.lines(of: "one two three", width: 60, count: 9)
        #expect(lines == ["one two", "three"] && !isCut)
        let short = font.lines(of: "one two three", width: 60, count: 1)
        #expect(short.lines == ["one t…"] && short.isCut)
        #expect(font.lines(of: "aaaaaaaaaaaa", width: 60, count: 9).lines == ["aaaaaa", "aaaaaa"])
        #expect(font.lines(of: " a ", width: 60, count: 9).lines == [" a "])
    }

    @Test func aSumOfTextsIsOneText() throws {
        let row = try elements { Text("a ") + Text("b").bold() }.named("text")
        #expect(row.map { $0.attributes["font-weight"] } == ["400", "700"])
        #expect(row[0].y == row[1].y && row[0].x < row[1].x)
        let long = Text(verbatim: String(repeating: "word ", count: 20))
        #expect(try elements { long + Text("end") }.texts.last?.hasSuffix("word end") ?? false)
    }

    @Test func anImageOfTheAppBehindTheContentHasNoName() throws {
        let behind = try elements { Text("a").containerBackground(for: .widget) { Image("sea") } }
        #expect(behind.texts == ["a"] && behind.named("rect", in: "background").count == 2)
    }

    @Test func textsKeepTheirLimits() throws {
        let words = String(repeating: "word ", count: 20)
        #expect(try elements { Text(words) }.texts.count == 3)
        let limited = try elements { Text(words).lineLimit(1) }
        #expect(limited.texts.count == 1 && limited.texts[0].hasSuffix("…"))
        let smaller = try elements { Text(words).lineLimit(2).minimumScaleFactor(0.5) }
        #expect(smaller.texts.count == 2 && !smaller.texts.joined().contains("…"))
        #expect(try elements { Text("aB").textCase(.uppercase) }.texts == ["AB"])
    }

    @Test func shapesAreFilledOrDrawnAsLines() throws {
        let ring = try elements {
            Circle().trim(from: 0, to: 0.25).stroke(.red, lineWidth: 4).frame(width: 40, height: 60)
        }
        let arc = try #require(ring.named("ellipse").first)
        #expect(arc.number("rx") == 18 && arc.attributes["stroke-dasharray"] == "28.27 113.1")
        #expect(arc.attributes["fill"] == "none" && arc.attributes["stroke"] == "#ff3b30")
        let filled = try elements {
            Capsule()
                .fill(LinearGradient(colors: [.red, .blue], startPoint: .top, endPoint: .bottom))
                .frame(width: 40, height: 20)
        }
        let capsule = try #require(filled.named("rect").first)
        #expect(capsule.number("rx") == 10 && filled.colors == ["#ff3b30", "#007aff"])
        let name = try #require(filled.named("linearGradient", in: "defs").first).attributes["id"]
        #expect(capsule.attributes["fill"] == "url(#\(name ?? ""))")
    }

    @Test func framesClipsAndPlacesAreDrawn() throws {
        let fixed = try elements {
            Text("a").frame(width: 100, height: 50, alignment: .bottomTrailing)
                .background(.blue, in: RoundedRectangle(cornerRadius: 8))
        }
        let ground = try #require(fixed.named("rect").first)
        #expect(ground.number("width") == 100 && ground.number("height") == 50)
        let text = try #require(fixed.named("text").first)
        #expect(abs(text.x - ground.x - 100 + 9.45) < 0.1)
        #expect(abs(text.y - ground.y - 50 + 20.4) < 0.1)
        let wide = try elements { Text("a").frame(maxWidth: .infinity).overlay { Circle() } }
        #expect(wide.named("ellipse").map { $0.number("cx") > 100 } == [true])
        let moved = try picture(environment()) {
            Color.red.clipShape(Circle()).offset(x: 3, y: 4).opacity(0.5)
        }.svg
        #expect(moved.contains("translate(3 4)") && moved.contains("opacity=\"0.5\""))
        #expect(try Elements(moved).named("ellipse", in: "defs").count == 1)
        let tooLarge = try picture(environment()) { Color.red.frame(width: 500) }
        #expect(tooLarge.caption.hasSuffix("does not fit"))
    }

    @Test func gaugesAreBarsOrRings() throws {
        let bar = try elements { ProgressView(value: 0.5) }
        #expect(
            bar.named("ellipse").isEmpty && bar.named("rect").map { $0.number("height") } == [6])
        #expect(try elements { ProgressView() }.named("ellipse").count == 2)
        let gauge = Gauge(value: 0.4) {
            Text("label")
        } currentValueLabel: {
            Text("40")
        } minimumValueLabel: {
            Text("0")
        } maximumValueLabel: {
            Text("99")
        }
        #expect(try elements { gauge }.texts == ["label", "40", "0", "99"])
        let ring = try elements { gauge.gaugeStyle(.accessoryCircularCapacity) }
        #expect(ring.texts == ["40"] && ring.named("ellipse").count == 2)
        let now = settings.now
        let moving = try elements { ProgressView(timerInterval: now - 30...now + 10) }
        #expect(moving.named("stop", in: "defs").map { $0.number("offset") } == [0, 0.25, 0.25, 1])
    }

    @Test func gridsAndAlternativesAreLaidOut() throws {
        let grid = try elements {
            Grid {
                GridRow {
                    Text("a")
                    Text("b")
                }
                GridRow {
                    Text("a longer one")
                    Text("b")
                }
                Text("below")
            }
        }
        #expect(grid.texts == ["a", "b", "a longer one", "b", "below"])
        let places = grid.named("text")
        #expect(places[1].x == places[3].x && places[0].x > places[2].x)
        #expect(places[0].y < places[2].y && places[2].y < places[4].y)
        let fitting = try elements {
            ViewThatFits {
                Text(verbatim: String(repeating: "long ", count: 20))
                Text("short")
            }
        }
        #expect(fitting.texts == ["short"])
        for (location, platform) in [
            (WidgetLocation.watchFace, WidgetDevice.Platform.watchOS), (.lockScreen, .iOS),
        ] {
            let labelled = try elements(
                environment(.accessoryCircular, at: location, on: platform)
            ) {
                Text("7").widgetLabel("steps")
            }
            #expect(labelled.texts.contains("7"))
            #expect(labelled.texts.contains("steps") == (location == .watchFace))
        }
    }

    @Test func aPageIsLoadedAgainWhenItsPicturesChange() throws {
        let environment = try environment()
        func version(
            _ heading: String, _ text: Text = Text("a"), after seconds: Double = 0,
            isLive: Bool = true
        ) -> String? {
            var later = settings
            later.now += seconds
            let drawn = picture(environment, later) { text }
            let section = PicturePage.Section(heading: heading, details: "", pictures: [drawn])
            return PicturePage(title: "t", sections: [section], isLive: isLive).html
                .firstMatch(of: /includes\("(v\d+)"\)/).map { String($0.1) }
        }
        #expect(version("a") != nil && version("a") != version("b"))
        #expect(version("a", isLive: false) == nil)
        #expect(version("a") != version("a", Text("b")))
        let timer = Text(settings.now + 90, style: .timer)
        #expect(version("a", timer) == version("a", timer, after: 5), "it moves by itself")
    }

    @Test func aPageIsServedToThisMachineAlone() async throws {
        let (ports, announced) = AsyncStream.makeStream(of: Int.self)
        let server = PreviewServer { "a page" }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                try await server.run(port: 0) { announced.yield($0) }
            }
            let port = try #require(await ports.first { _ in true })
            let http = TestHTTP(url: "http://127.0.0.1:\(port)", ca: "/dev/null")
            #expect(try await http.send("GET", "/").text == "a page")
            #expect(try await http.send("GET", "/secret").status == 404)
            #expect(try await http.send("POST", "/").status == 404)
            let elsewhere = try await http.send("GET", "/", headers: [("Host", "evil.example")])
            #expect(elsewhere.status == 403 && elsewhere.body.isEmpty)
            group.cancelAll()
        }
    }
}
