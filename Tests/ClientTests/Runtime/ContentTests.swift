import Foundation
import Testing
import WidgetModel

@testable import WidgetViews

private struct BalanceView: View {
    @Environment(\.redactionReasons) private var reasons

    var body: some View {
        VStack {
            Text(reasons.contains(.privacy) ? "hidden" : "42")
            Text("gold").privacySensitive()
            Gauge(value: 0.3) { Text("health") }
            Text("Balance").unredacted()
        }
    }
}

/// The heading "Display content in your widget" of the article "Creating a widget extension", and
/// what the other articles require of a widget's views.
@Suite("Display content in your widget") struct ContentTests {
    private func environment(
        _ family: WidgetFamily = .systemSmall, at location: WidgetLocation = .homeScreen,
        _ state: WidgetDeviceState = WidgetDeviceState(), hasContent: Bool = true
    ) throws -> WidgetEnvironment {
        try WidgetInfo(kind: "k", family: family)
            .environment(at: location, state: state, hasContent: hasContent)
    }

    private func text(_ text: String) -> WidgetNode { WidgetNode(.text(text)) }

    @Test func whatIsSaidNearestToAViewIsHowItLooks() throws {
        let node = try environment().draw {
            VStack(alignment: .leading, spacing: 4) {
                Text("a").font(.headline).font(.body).foregroundStyle(.red)
                Spacer()
                Text("b").padding(.horizontal, 2).padding(1)
                Button("c", intent: TapIntent("c")).buttonStyle(.plain).tint(Color("brand"))
                ZStack(alignment: .topTrailing) { Text("d") }
            }
            .font(.system(size: 12, weight: .bold))
            .toggleStyle(.switch)
        }
        guard case .stack(.vertical, let parts) = node.content else {
            Issue.record("no stack")
            return
        }
        #expect(node.style.alignment == .leading && node.style.spacing == 4)
        #expect(node.style.font == .system(size: 12).bold() && node.style.toggleStyle == .switch)
        #expect(parts.map(\.style.font) == [.headline, nil, nil, nil, nil])
        #expect(parts[0].style.foreground == .red && parts[1].content == .spacer)
        #expect(
            parts[2].style.padding == EdgeInsets(top: 1, leading: 3, bottom: 1, trailing: 3))
        #expect(parts[3].style.buttonStyle == .plain && parts[3].style.tint == Color("brand"))
        #expect(parts[4].content == .stack(.depth, [text("d")]))
        #expect(parts[4].style.alignment == .topTrailing)
        let bytes = node.json.serialized
        let read = try WidgetNode(JSONValue(parsing: bytes))
        #expect(read == node && read?.json.serialized == bytes)
    }

    /// An archive of a newer version is read as far as this one knows it.
    @Test func aModifierThatIsNotKnownIsLeftOut() throws {
        let newer = #"{"text":"a","look":{"sparkle":1,"opacity":0.5}}"#
        let node = try #require(WidgetNode(try JSONValue(parsing: Array(newer.utf8))))
        #expect(node.content == .text("a") && node.style.attributes == [.opacity: .number(0.5)])
    }

    @Test func viewsMayDependOnConditionsAndLists() throws {
        let names: [String] = ["a", "b"]
        let missing: String? = nil
        let node = try environment().draw {
            VStack {
                ForEach(names) { Text($0) }
                if let missing { Text(missing) }
                if names.isEmpty { Text("none") } else { EmptyView() }
                Text(Date(timeIntervalSince1970: 0), style: .timer)
            }
        }
        #expect(
            node.parts == [
                text("a"), text("b"), WidgetNode(.date(Date(timeIntervalSince1970: 0), .timer)),
            ])
    }

    @Test(arguments: [
        (0.5, 0.0...1.0, 0.5), (7, 0...10, 0.7), (-1, 0...10, 0), (11, 0...10, 1), (1, 1...1, 0),
        (.nan, 0...1, 0),
    ]) func aGaugeStaysWithinItsBounds(
        value: Double, bounds: ClosedRange<Double>, expected: Double
    ) throws {
        let node = try environment().draw { Gauge(value: value, in: bounds) { Text("health") } }
        #expect(node == WidgetNode(.gauge(expected, label: text("health"))))
    }

    /// Content that must not be recognized is absent from the drawing, and so is the action behind
    /// it.
    @Test func whatIsSensitiveIsNotThereWhereItIsHidden() throws {
        let url = try #require(URL(string: "game://secret"))
        let hidden = WidgetDeviceState(
            lock: .lockedWithPasscode,
            sensitiveContent: SensitiveContentSettings(showsOnLockScreen: false))
        let node = try environment(.accessoryRectangular, at: .lockScreen, hidden).draw {
            VStack {
                Text("open")
                VStack {
                    Text("secret")
                    Text("fine").unredacted()
                    Link(destination: url) { Text("secret") }
                }
                .privacySensitive()
                Button(intent: TapIntent("secret")) { Text("secret") }.privacySensitive()
                Text("secret").privacySensitive().widgetURL(url)
                VStack { Text("fine") }.privacySensitive().widgetURL(url)
            }
        }
        #expect(!"\(node)".contains("secret"))
        #expect("\(node)".contains("open") && "\(node)".contains("fine"))
    }

    /// The modifier `redacted(reason:)` of the heading "Hide sensitive content".
    @Test func anAppHidesPartsForReasonsOfItsOwn() throws {
        let view = {
            VStack {
                BalanceView().redacted(reason: .privacy)
                BalanceView().redacted(reason: .placeholder)
                BalanceView()
            }
        }
        let shown = try environment().draw(view).parts.map { $0.parts.map(\.content) }
        let health = WidgetNode.Content.gauge(0.3, label: text("health"))
        #expect(
            shown == [
                [.text("hidden"), .redacted, health, .text("Balance")],
                [.redacted, .redacted, .redacted, .text("Balance")],
                [.text("42"), .text("gold"), health, .text("Balance")],
            ])
        let hidden = WidgetDeviceState(
            lock: .lockedWithPasscode,
            sensitiveContent: SensitiveContentSettings(showsOnLockScreen: false))
        let locked = try environment(.accessoryRectangular, at: .lockScreen, hidden).draw {
            BalanceView()
        }
        #expect(locked.parts.map(\.content) == shown[0])
        let placeholder = try environment(hasContent: false).draw { BalanceView() }
        #expect(placeholder.parts.map(\.content) == shown[1])
    }

    // MARK: The archived form

    private static func node(_ depth: Int, _ random: inout SplitMix64) -> WidgetNode {
        let texts = ["", "turn 1", "\u{1F43C} \"quoted\"\n", "\u{0}"]
        let text = texts[Int(random.next() % 4)]
        let call = IntentCall(
            intent: "Toggle",
            parameters: ["a": .single(text), "b": .unset, "c": .list(["x", text])])
        func part() -> WidgetNode { node(depth - 1, &random) }
        let content: WidgetNode.Content =
            switch random.next() % (depth > 0 ? 11 : 5) {
            case 0: .text(text)
            case 1:
                .date(Date(timeIntervalSince1970: Double(random.next() % 10_000) / 8), .relative)
            case 2: .image(text)
            case 3: .redacted
            case 4: .color(Color(text))
            case 9: .styledToggle(random.next() % 2 == 0, call, on: part(), off: part())
            case 5: .gauge(Double(random.next() % 1_000) / 1_000, label: part())
            case 6: .button(call, label: part())
            case 7: .toggle(random.next() % 2 == 0, call, label: part())
            case 8: .link(text, label: part())
            default: .stack(.depth, (0..<random.next() % 4).map { _ in part() })
            }
        return WidgetNode(
            content, marks: WidgetNode.Marks(rawValue: UInt8(random.next() % 32)),
            widgetURL: random.next() % 4 == 0 ? text : nil)
    }

    @Test func whatIsArchivedIsReadBack() throws {
        var random = SplitMix64(seed: 20_261_121)
        for _ in 0..<2_000 {
            let node = Self.node(4, &random)
            let bytes = node.json.serialized
            #expect(WidgetNode(try JSONValue(parsing: bytes)) == node)
        }
    }

    /// A damaged archive gives nothing or another tree, and never ends the process.
    @Test func whatIsDamagedIsReadWithoutHarm() throws {
        var random = SplitMix64(seed: 7)
        var refused = 0
        for _ in 0..<5_000 {
            var bytes = Self.node(3, &random).json.serialized
            for _ in 0..<3 {
                bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(random.next() % 256)
            }
            let read = (try? JSONValue(parsing: bytes)).flatMap { WidgetNode($0) }
            if read == nil { refused += 1 }
        }
        #expect(refused > 1_000)
    }

    @Test(arguments: [
        "null", "[]", "{}", #"{"text":1}"#, #"{"txt":"a"}"#, #"{"image":null}"#,
        #"{"date":0}"#, #"{"date":0,"style":"sundial"}"#, #"{"gauge":0.5}"#,
        #"{"stack":"vertical"}"#, #"{"stack":"diagonal","parts":[]}"#,
        #"{"stack":"vertical","parts":[1]}"#, #"{"button":{},"label":{"text":"a"}}"#,
        #"{"button":{"intent":"I","parameters":{"a":1}},"label":{"text":"a"}}"#,
        #"{"toggle":{"intent":"I","parameters":{}},"label":{"text":"a"}}"#,
        #"{"styledToggle":{"intent":"I","parameters":{}},"isOn":true,"on":{"text":"a"}}"#,
        #"{"color":1}"#, #"{"link":"a"}"#, #"{"text":"a","marks":["bold"]}"#,
        #"{"text":"a","look":{"tint":1}}"#, #"{"text":"a","look":{"padding":[1]}}"#,
        #"{"text":"a","look":{"toggles":"odd"}}"#, #"{"text":"a","look":7}"#,
        #"{"text":"a","look":{"opacity":null}}"#, #"{"text":"a","look":{"font":"big"}}"#,
        #"{"text":"a","look":{"offset":["x"]}}"#, #"{"text":"a","look":{"shading":{}}}"#,
    ]) func whatIsNotOfTheFormIsNothing(text: String) throws {
        #expect(WidgetNode(try JSONValue(parsing: Array(text.utf8))) == nil)
    }
}
