import Foundation
import Testing
import TimelineRuntime
import WidgetModel
import WidgetViews

private func environment(
    _ family: WidgetFamily, _ location: WidgetLocation, on device: WidgetDevice,
    traits: WidgetTraits = WidgetTraits(), state: WidgetDeviceState = WidgetDeviceState()
) throws(UnsupportedContext) -> WidgetEnvironment {
    try WidgetContextRules().environment(
        of: WidgetInfo(kind: "w", family: family), with: traits, at: location, on: device,
        state: state)
}

@Suite("Make your background views removable")
struct MakeYourBackgroundViewsRemovableTests {
    @Test func theBackgroundGoesWhereTheSystemsLookReplacesIt() throws {
        for place in Articles.places {
            for mode in WidgetRenderingMode.allCases {
                guard
                    let environment = try? environment(
                        place.family, place.location, on: WidgetDevice(place.platform),
                        state: WidgetDeviceState(renderingMode: mode))
                else { continue }
                let isRemoved =
                    mode != .fullColor
                    || [.standBy, .carPlay, .watchFace].contains(place.location)
                #expect(
                    environment.showsWidgetContainerBackground == !isRemoved, "\(place) \(mode)")
            }
        }
    }

    @Test func aBackgroundInALabelGoesToo() throws {
        let environment = try environment(.systemSmall, .standBy, on: WidgetDevice(.iOS))
        let url = try #require(URL(string: "app://"))
        func label(_ text: String) -> some View {
            Text(text).containerBackground(for: .widget) { Text("background") }
        }
        let node = environment.draw {
            VStack {
                Button(intent: TapIntent("x")) { label("button") }
                Link(destination: url) { label("link") }
                Toggle(isOn: true, intent: TapIntent("x")) { label("toggle") }
                Toggle(isOn: true, intent: TapIntent("x")) { label("styled") }
                    .toggleStyle(PlainToggle())
            }
        }
        #expect(node.texts == ["button", "link", "toggle", "styled"])
        #expect(!"\(node)".contains("background"))
    }

    private struct PlainToggle: ToggleStyle {
        func makeBody(configuration: Configuration) -> some View { configuration.label }
    }

    @Test func aBackgroundThatIsNotRemovableStaysOrClosesTheLocation() throws {
        let traits = WidgetTraits(isContainerBackgroundRemovable: false)
        for place in Articles.places {
            let device = WidgetDevice(place.platform)
            if place.location == .lockScreen, Articles.system.contains(place.family) {
                #expect(
                    throws: UnsupportedContext.backgroundNotRemovable(place.family, .lockScreen)
                ) { try environment(place.family, place.location, on: device, traits: traits) }
            } else {
                let environment = try environment(
                    place.family, place.location, on: device, traits: traits)
                #expect(environment.showsWidgetContainerBackground, "\(place)")
            }
        }
    }

    @Test(arguments: [
        (
            WidgetFamily.systemSmall, WidgetLocation.homeScreen, WidgetDevice.Platform.iOS, "16",
            true
        ),
        (.accessoryCircular, .lockScreen, .iOS, "16", false),
        (.accessoryCircular, .watchFace, .watchOS, "9", true),
        (.accessoryCircular, .watchFace, .watchOS, "10", false),
        (.systemMedium, .notificationCenter, .macOS, "13", true),
    ])
    func olderSystemsRemoveNone(
        family: WidgetFamily, location: WidgetLocation, platform: WidgetDevice.Platform,
        version: String, shows: Bool
    ) throws {
        let mode = WidgetContextRules().renderingModes(of: family, at: location).last
        let environment = try environment(
            family, location, on: WidgetDevice(platform, osVersion: OSVersion(version)),
            state: WidgetDeviceState(renderingMode: mode))
        #expect(environment.showsWidgetContainerBackground == shows)
    }
}

@Suite("Support Always On")
struct SupportAlwaysOnTests {
    @Test func accessoriesAreDimmedWhereTheyStayVisible() throws {
        for place in Articles.places {
            for isAlwaysOn in [false, true] {
                // On the iPad's Lock Screen a system family is dimmed like its neighbours.
                let staysVisible = [.lockScreen, .watchFace, .smartStack].contains(place.location)
                let environment = try environment(
                    place.family, place.location, on: WidgetDevice(place.platform),
                    state: WidgetDeviceState(isAlwaysOn: isAlwaysOn))
                #expect(
                    environment.isLuminanceReduced == (isAlwaysOn && staysVisible), "\(place)")
            }
        }
    }
}

@Suite("Update your small widget to support StandBy and CarPlay")
struct UpdateYourSmallWidgetToSupportStandByAndCarPlayTests {
    @Test(
        arguments: [
            (CGSize(width: 316, height: 400), 2), (CGSize(width: 632, height: 316), 2),
            (CGSize(width: 79, height: 158), 0.5), (CGSize(width: 170, height: 171), 170.0 / 158),
            (CGSize.zero, nil), (CGSize(width: -1, height: 10), nil),
            (CGSize(width: 10, height: CGFloat.nan), nil),
            (CGSize(width: CGFloat.infinity, height: 10), nil),
        ] as [(CGSize, Double?)])
    func itIsScaledToTheAvailableSpaceAndOthersAreLaidOutForIt(
        space: CGSize, scale: Double?
    ) throws {
        for place in Articles.places {
            let environment = try environment(
                place.family, place.location, on: WidgetDevice(place.platform),
                state: WidgetDeviceState(availableSize: space))
            let isScaled = [.standBy, .carPlay].contains(place.location)
            let own = place.family.displaySize
            #expect(environment.displaySize == (isScaled || scale == nil ? own : space))
            #expect(environment.scale == (isScaled ? scale ?? 1 : 1))
            let context = TimelineProviderContext(environment, isPreview: true)
            #expect(context.family == place.family && context.isPreview)
            #expect(context.displaySize == environment.displaySize)
        }
    }

    @Test func lowLightTurnsStandByRed() throws {
        for place in Articles.places {
            let environment = try environment(
                place.family, place.location, on: WidgetDevice(place.platform),
                state: WidgetDeviceState(isLowLight: true))
            let isStandBy = place.location == .standBy
            #expect(environment.isTintedRed == isStandBy)
            if isStandBy { #expect(environment.widgetRenderingMode == .vibrant) }
        }
        let day = try environment(.systemSmall, .standBy, on: WidgetDevice(.iOS))
        #expect(!day.isTintedRed && day.widgetRenderingMode == .fullColor)
    }
}

@Suite("Indicate that a widget might not fit a specific context")
struct IndicateThatAWidgetMightNotFitASpecificContextTests {
    struct Declared {
        var name: String
        var traits: WidgetTraits
    }

    private func names(_ offers: [WidgetGallery<Declared>.Offer]) -> [String] {
        offers.map { "\($0.widget.name) \($0.families.map(\.rawValue).joined(separator: " "))" }
    }

    @Test func aDisfavoredLocationHasTheWidgetUnderOther() {
        var photos = WidgetTraits(supportedFamilies: [.systemSmall, .accessoryCircular])
        photos.disfavor([.lockScreen, .standBy], for: [.systemSmall])
        photos.disfavor([.homeScreen], for: [.systemSmall])
        let widgets = [
            Declared(name: "photos", traits: photos),
            Declared(
                name: "weather",
                traits: WidgetTraits(supportedFamilies: [.accessoryInline, .systemSmall])),
            Declared(name: "chart", traits: WidgetTraits(supportedFamilies: [.systemLarge])),
        ]
        let gallery = { (location: WidgetLocation, platform: WidgetDevice.Platform) in
            WidgetContextRules().gallery(
                of: widgets, at: location, on: WidgetDevice(platform), traits: \.traits)
        }
        let lockScreen = gallery(.lockScreen, .iPadOS)
        #expect(
            names(lockScreen.suggested) == [
                "photos accessoryCircular", "weather accessoryInline systemSmall",
            ])
        #expect(names(lockScreen.other) == ["photos systemSmall"])
        let phone = gallery(.lockScreen, .iOS)
        #expect(
            names(phone.suggested) == ["photos accessoryCircular", "weather accessoryInline"])
        #expect(phone.other.isEmpty, "not available there in the disfavored family at all")
        let home = gallery(.homeScreen, .iOS)
        #expect(names(home.suggested) == ["weather systemSmall", "chart systemLarge"])
        #expect(names(home.other) == ["photos systemSmall"])
    }

    @Test func everyAvailableFamilyIsOfferedOnce() {
        for platform in WidgetDevice.Platform.allCases {
            for location in Articles.locations {
                let gallery = WidgetContextRules().gallery(
                    of: ["w"], at: location, on: WidgetDevice(platform),
                    traits: { _ in WidgetTraits() })
                let expected = Articles.places.filter {
                    $0.platform == platform && $0.location == location
                }
                let families = gallery.suggested.flatMap(\.families)
                #expect(Set(families) == Set(expected.map(\.family)))
                #expect(families.count == expected.count && gallery.other.isEmpty)
            }
        }
    }
}
