import CatalogModel
import Testing
import WidgetModel

@testable import WidgetViews

@Suite("Preparing widgets for additional platforms, contexts, and appearances")
struct PreparingWidgetsForAdditionalPlatformsTests {
    let rules = WidgetContextRules()

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
            .systemExtraLarge, .homeScreen, WidgetDevice(.iOS),
            "systemExtraLarge is for iPad, Mac and Apple Vision Pro only, not for iPhone"
        ),
        (
            .systemMedium, .lockScreen, WidgetDevice(.iPadOS),
            "on iPad, systemMedium is for the Home Screen only, not for the Lock Screen"
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

    @Test func everyPlaceHasTheModesOfTheTables() throws {
        for place in Articles.places {
            let info = WidgetInfo(kind: "w", family: place.family)
            let device = WidgetDevice(place.platform)
            let ofFamily = Articles.modes(of: place.family)
            let modes = rules.renderingModes(of: place.family, at: place.location)
            #expect(
                Set(modes) == ofFamily.intersection(Articles.modes(at: place.location)), "\(place)")
            let usual = try rules.environment(
                of: info, with: WidgetTraits(), at: place.location, on: device)
            #expect(usual.widgetRenderingMode == modes.first, "\(place)")
            for mode in WidgetRenderingMode.allCases {
                var chosen: WidgetEnvironment?
                let refused = refusal { () throws(UnsupportedContext) in
                    chosen = try rules.environment(
                        of: info, with: WidgetTraits(), at: place.location, on: device,
                        state: WidgetDeviceState(colorScheme: .dark, renderingMode: mode))
                }
                switch refused {
                case nil: #expect(modes.contains(mode), "\(place) \(mode)")
                case .renderingMode(place.family, mode): #expect(!ofFamily.contains(mode))
                case .renderingModeAtLocation(place.location, mode, let allowed):
                    #expect(ofFamily.contains(mode) && !modes.contains(mode))
                    #expect(Set(allowed) == Articles.modes(at: place.location))
                default: Issue.record("\(place) \(mode): \(String(describing: refused))")
                }
                guard let chosen else { continue }
                #expect(chosen.widgetRenderingMode == mode && chosen.colorScheme == .dark)
                #expect(chosen.widgetFamily == place.family && chosen.location == place.location)
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
        #expect(throws: UnsupportedContext.undeclared(.systemLarge)) {
            try rules.environment(
                of: WidgetInfo(kind: "w", family: .systemLarge),
                with: WidgetTraits(supportedFamilies: [.systemSmall]), at: .homeScreen,
                on: WidgetDevice(.iOS))
        }
    }
}
