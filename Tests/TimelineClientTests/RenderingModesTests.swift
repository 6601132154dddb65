import Testing
import WidgetModel

@testable import TimelineClient

@Suite("Preparing widgets for additional platforms, contexts, and appearances")
struct PreparingWidgetsForAdditionalPlatformsTests {
    let rules = WidgetContextRules()

    @Test func theTestsTableIsReadWhole() {
        #expect(Articles.since.count == 45)
        #expect(Articles.modesOfFamily.count == 9)
        #expect(Articles.since.values.allSatisfy { $0 >= 9 })
    }

    @Test func everyFamilyIsWhereTheTableHasIt() {
        for place in Articles.combinations {
            let device = WidgetDevice(place.platform)
            let refused = refusal { () throws(UnsupportedContext) in
                try rules.check(place.family, at: place.location, on: device)
            }
            if Articles.since[place] != nil {
                #expect(refused == nil, "\(place)")
            } else if Articles.since.keys.contains(where: {
                $0.family == place.family && $0.platform == place.platform
            }) {
                #expect(
                    refused == .location(place.family, place.location, place.platform), "\(place)")
            } else {
                #expect(refused == .platform(place.family, place.platform), "\(place)")
            }
        }
    }

    @Test func everyPlaceBeginsWithItsVersion() throws {
        for place in Articles.places {
            let since = try #require(Articles.since[place])
            for major in 1...30 {
                let device = WidgetDevice(place.platform, osVersion: OSVersion("\(major).6"))
                let refused = refusal { () throws(UnsupportedContext) in
                    try rules.check(place.family, at: place.location, on: device)
                }
                let expected: UnsupportedContext? =
                    major >= since
                    ? nil : .version(place.family, place.location, since: since, device)
                #expect(refused == expected, "\(place) \(major)")
            }
        }
    }

    @Test func catalogsAndContextsAgreeOnPlatforms() {
        for (family, platforms) in WidgetFamilies.table {
            let places = WidgetContextTable.places[WidgetFamily(rawValue: family)] ?? []
            #expect(Set(places.map(\.platform.rawValue)) == platforms, "\(family)")
        }
        #expect(WidgetContextTable.places.count == WidgetFamilies.table.count)
        #expect(WidgetDevice.Platform.allCases.map(\.rawValue) == WidgetFamilies.platforms)
    }

    @Test func namesInNoTableAreOpen() {
        let family = WidgetFamily(rawValue: "systemGigantic")
        let location = WidgetLocation(rawValue: "ceiling")
        var strict = rules
        strict.admitsUnknownNames = false
        let check = { (rules: WidgetContextRules, family: WidgetFamily, location: WidgetLocation) in
            refusal { () throws(UnsupportedContext) in
                try rules.check(family, at: location, on: WidgetDevice(.iOS), in: .fullColor)
            }
        }
        #expect(check(rules, family, .homeScreen) == nil)
        #expect(check(rules, .systemSmall, location) == nil)
        #expect(check(rules, .accessoryCorner, location) == .platform(.accessoryCorner, .iOS))
        #expect(check(strict, family, .homeScreen) == .unknownName("systemGigantic"))
        #expect(check(strict, .systemSmall, location) == .unknownName("ceiling"))
        #expect(check(strict, .systemSmall, .homeScreen) == nil)
    }

    @Test(arguments: [
        (
            WidgetFamily.accessoryCorner, WidgetLocation.lockScreen, WidgetDevice(.iOS),
            "accessoryCorner is for watch faces only, not for iPhone"
        ),
        (
            .accessoryCorner, .smartStack, WidgetDevice(.watchOS),
            "on Apple Watch, accessoryCorner is for watch faces only, not for the Smart Stack"
        ),
        (
            .systemExtraLarge, .homeScreen, WidgetDevice(.iOS),
            "systemExtraLarge is for iPad, Mac and Apple Vision Pro only, not for iPhone"
        ),
        (
            .systemMedium, .lockScreen, WidgetDevice(.iPadOS),
            "on iPad, systemMedium is for the Home Screen only, not for the Lock Screen"
        ),
        (
            .systemSmall, .lockScreen, WidgetDevice(.iPadOS, osVersion: OSVersion("16.4")),
            "systemSmall needs iPadOS 17 for the Lock Screen; this is iPadOS 16.4"
        ),
        (
            .accessoryCircular, .watchFace, WidgetDevice(.watchOS),
            "accessoryCircular has no full-colour rendering"
        ),
        (
            .accessoryRectangular, .lockScreen, WidgetDevice(.iOS),
            "widgets for the Lock Screen have vibrant rendering only, no full-colour rendering"
        ),
    ])
    func aRefusalGivesTheTablesReason(
        family: WidgetFamily, location: WidgetLocation, device: WidgetDevice, reason: String
    ) {
        let refused = refusal { () throws(UnsupportedContext) in
            try rules.check(family, at: location, on: device, in: .fullColor)
        }
        #expect(refused?.description == reason)
    }
}

@Suite struct RenderingModesTests {
    let rules = WidgetContextRules()

    @Test func everyFamilyHasTheModesOfTheTable() throws {
        for place in Articles.places {
            let device = WidgetDevice(place.platform)
            let ofFamily = try #require(Articles.modesOfFamily[place.family])
            let ofLocation = Articles.modes(at: place.location)
            for mode in WidgetRenderingMode.allCases {
                let refused = refusal { () throws(UnsupportedContext) in
                    try rules.check(place.family, at: place.location, on: device, in: mode)
                }
                switch refused {
                case nil:
                    #expect(
                        ofFamily.contains(mode) && ofLocation.contains(mode), "\(place) \(mode)")
                case .renderingMode(let family, let refusedMode):
                    #expect(!ofFamily.contains(mode), "\(place) \(mode)")
                    #expect(family == place.family && refusedMode == mode)
                case .renderingModeAtLocation(let location, let refusedMode, let allowed):
                    #expect(ofFamily.contains(mode) && !ofLocation.contains(mode))
                    #expect(location == place.location && refusedMode == mode)
                    #expect(Set(allowed) == ofLocation)
                default:
                    Issue.record("\(place) \(mode): \(String(describing: refused))")
                }
            }
        }
    }

    @Test func everyPlaceHasAModeOfItsOwn() throws {
        for place in Articles.places {
            let expected = try #require(Articles.modesOfFamily[place.family])
                .intersection(Articles.modes(at: place.location))
            let modes = rules.renderingModes(of: place.family, at: place.location)
            #expect(Set(modes) == expected && modes.count == expected.count, "\(place)")
            let environment = try rules.environment(
                of: WidgetInfo(kind: "w", family: place.family), with: WidgetTraits(),
                at: place.location, on: WidgetDevice(place.platform))
            #expect(environment.widgetRenderingMode == modes.first, "\(place)")
        }
    }

    @Test func theContentSeesTheModeThatWasChosen() throws {
        for place in Articles.places {
            for mode in WidgetRenderingMode.allCases {
                let environment = try? rules.environment(
                    of: WidgetInfo(kind: "w", family: place.family), with: WidgetTraits(),
                    at: place.location, on: WidgetDevice(place.platform),
                    state: WidgetDeviceState(colorScheme: .dark, renderingMode: mode))
                let exists =
                    Articles.modesOfFamily[place.family]?
                    .intersection(Articles.modes(at: place.location)).contains(mode)
                #expect((environment != nil) == exists, "\(place) \(mode)")
                guard let environment else { continue }
                #expect(environment.widgetRenderingMode == mode)
                #expect(environment.widgetFamily == place.family)
                #expect(environment.location == place.location)
                #expect(environment.colorScheme == .dark)
            }
        }
    }

    @Test func theProviderSeesAllItsContexts() {
        let device = WidgetDevice(.iOS, osVersion: OSVersion("18.1"))
        let contexts = rules.environments(
            of: WidgetInfo(kind: "w", family: .systemSmall), with: WidgetTraits(), on: device
        ).map { "\($0.location) \($0.widgetRenderingMode)" }
        #expect(
            contexts == [
                "homeScreen fullColor", "homeScreen accented", "iPhoneWidgetsOnMac fullColor",
                "iPhoneWidgetsOnMac accented", "iPhoneWidgetsOnMac vibrant", "standBy fullColor",
                "standBy vibrant",
            ])
        let night = rules.environments(
            of: WidgetInfo(kind: "w", family: .systemSmall), with: WidgetTraits(), on: device,
            state: WidgetDeviceState(isLowLight: true)
        ).filter { $0.location == .standBy }
        #expect(night.map(\.widgetRenderingMode) == [.vibrant])
    }

    @Test func aFamilyThatIsNotDeclaredHasNoContext() {
        #expect(
            throws: UnsupportedContext.undeclared(.systemLarge),
            performing: {
                try rules.environment(
                    of: WidgetInfo(kind: "w", family: .systemLarge),
                    with: WidgetTraits(supportedFamilies: [.systemSmall]), at: .homeScreen,
                    on: WidgetDevice(.iOS))
            })
    }
}

/// A view that looks different in each mode.
private struct ScoreView: View {
    @Environment(\.widgetRenderingMode) private var renderingMode
    @Environment(\.isLuminanceReduced) private var isLuminanceReduced

    var body: some View {
        switch renderingMode {
        case .fullColor: Image("photo")
        case .accented:
            VStack {
                Text("3").widgetAccentable()
                Text("points")
            }
        case .vibrant: Text(isLuminanceReduced ? "3, dimmed" : "3")
        }
    }
}

@Suite("Overview: rendering modes in content") struct RenderingModesInContentTests {
    private func drawn(
        _ family: WidgetFamily, _ location: WidgetLocation, _ state: WidgetDeviceState
    ) throws -> WidgetNode {
        try WidgetContextRules().environment(
            of: WidgetInfo(kind: "w", family: family), with: WidgetTraits(), at: location,
            on: WidgetDevice(.iOS), state: state
        ).draw { ScoreView() }
    }

    @Test func eachModeHasItsOwnViews() throws {
        #expect(
            try drawn(.systemSmall, .homeScreen, .init()) == WidgetNode(.image("photo")))
        #expect(
            try drawn(.accessoryCircular, .lockScreen, .init()) == WidgetNode(.text("3")))
        #expect(
            try drawn(.accessoryCircular, .lockScreen, .init(isAlwaysOn: true))
                == WidgetNode(.text("3, dimmed")))
    }

    @Test func onlyWhatIsMarkedIsInTheAccentsGroup() throws {
        let node = try drawn(
            .systemSmall, .homeScreen, WidgetDeviceState(renderingMode: .accented))
        #expect(
            node
                == WidgetNode(
                    .stack(
                        .vertical,
                        [
                            WidgetNode(.text("3"), marks: .accentable),
                            WidgetNode(.text("points")),
                        ])))
    }
}
