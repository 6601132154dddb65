import Foundation
import Testing

@testable import TimelineRuntime
@testable import WidgetViews

extension WidgetNode {
    fileprivate var texts: [String] {
        if case .text(let text) = content { [text] } else { parts.flatMap(\.texts) }
    }

    /// The node with all its parts.
    fileprivate var all: [WidgetNode] { [self] + parts.flatMap(\.all) }
}

/// What the articles say of Live Activities: declared, drawn, and used.
@Suite struct LiveActivityTests {
    private let declared: WidgetDeclarations
    private let kept: KeptActivity
    private let staleDate = Date.now + 3_600
    private let iPhone = WidgetDevice(.iOS)

    init() throws {
        declared = try WidgetDeclarations(AdventureBundle())
        kept = try KeptActivity(
            AdventureAttributes(hero: "Spouty"),
            ActivityContent(
                state: AdventureAttributes.ContentState(healthLevel: 0.2, eventDescription: "Hit"),
                staleDate: staleDate), nil)
    }

    private func drawn(
        _ presentation: ActivityPresentation, at date: Date = .now
    ) throws -> WidgetNode {
        let archive = try declared.drawings(of: kept, on: iPhone).first {
            $0.widget.activityPresentation == presentation
        }
        let environment = try #require(declared.rules.environment(of: presentation, on: iPhone))
        #expect(environment.widgetContentMargins == EdgeInsets(), "a widget's are 16")
        return try #require(archive?.node(at: date, in: environment))
    }

    /// "Creating a widget extension": a configuration beside those of the widgets.
    @Test func aBundleDeclaresActivitiesBesideWidgets() throws {
        #expect(declared.kinds == ["com.mygame.game-status"], "an activity is no widget")
        #expect(declared.activityTypes == ["AdventureAttributes"])
        let catalog = declared.catalog.objectValue
        #expect(catalog?["activities"] == [["type": "AdventureAttributes"]])
        let twice = #expect(throws: WidgetDeclarationError.self) {
            try WidgetDeclarations([AdventureActivity().body, AdventureActivity().body])
        }
        #expect(twice?.faults == ["AdventureAttributes: declared twice"])
    }

    /// "Widgets can display data in many sizes, from small watch complications or Dynamic Island
    /// presentations": each presentation has its views. "Live Activities don't use a timeline
    /// mechanism": from the stale date on, no code runs.
    @Test func eachPresentationIsDrawn() throws {
        #expect(try drawn(.lockScreen, at: staleDate - 1).texts == ["Spouty", "Hit", "Shield"])
        #expect(try drawn(.lockScreen, at: staleDate).texts[1] == "Connection lost")
        let expanded = ["Spouty", "Hit", "20%", "Shield", "Map"]
        #expect(try drawn(.expanded).texts == expanded)
        #expect(try drawn(.compact).texts == ["20%"])
        #expect(try drawn(.compact).all.contains { $0.content == .image("shield") })
        #expect(try drawn(.minimal).texts == ["!"])
    }

    @Test func theIslandHasItsTintAndURL() throws {
        let background = try drawn(.lockScreen).all.first {
            $0.marks.contains(.containerBackground)
        }
        #expect(background.map { "\($0)".contains("cyan") } == true)
        for presentation in ActivityPresentation.allCases where presentation != .lockScreen {
            let node = try drawn(presentation)
            #expect(node.widgetURL == "game:///hero")
            var keyline = Figure(.containerRelative, paint: .color(.cyan))
            keyline.lineWidth = 1
            #expect(node.all.contains { $0.content == .shape(keyline) })
        }
        #expect(try drawn(.expanded).all.contains { $0.style[.layoutPriority] == .number(1) })
    }

    /// "Live Activities can include buttons or toggles in the expanded and the Lock Screen
    /// presentation", and on a locked device they are inactive.
    @Test func controlsWorkInTheExpandedAndTheLockScreenPresentation() throws {
        func refusal(
            _ presentation: ActivityPresentation, _ lock: DeviceLock = .unlocked
        ) throws -> InteractionRefusal? {
            let state = WidgetDeviceState(lock: lock)
            return try #require(
                declared.rules.environment(of: presentation, on: iPhone, state: state)
            ).interactionRefusal
        }
        for one in [ActivityPresentation.lockScreen, .expanded] {
            #expect(try refusal(one) == nil && refusal(one, .lockedWithPasscode) == .locked)
        }
        for presentation in [ActivityPresentation.compact, .minimal] {
            #expect(try refusal(presentation) == .family(presentation.family))
        }
        let call = IntentCall(RaiseShield())
        #expect(try drawn(.lockScreen).control(of: call) == .toggle(isOn: false))
        #expect(try drawn(.expanded).control(of: call) == .button)
        #expect(RaiseShield.process == .app)
    }

    @Test func aDeviceShowsThePresentationsThatItHas() {
        func shown(_ device: WidgetDevice) -> [ActivityPresentation] {
            ActivityPresentation.allCases.filter {
                declared.rules.environment(of: $0, on: device) != nil
            }
        }
        #expect(shown(iPhone) == ActivityPresentation.allCases)
        #expect(shown(WidgetDevice(.iOS, osVersion: OSVersion("15.8"))) == [])
        #expect(shown(WidgetDevice(.iPadOS)) == [.lockScreen])
        #expect(shown(WidgetDevice(.macOS)) == [] && shown(WidgetDevice(.watchOS)) == [])
    }
}
