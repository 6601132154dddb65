import Foundation
import Testing
import WidgetModel

@testable import TimelineRuntime
@testable import WidgetViews

/// The articles' tables, written out once more so that the tests do not ask the code under test.
enum Articles {
    static let families: [WidgetFamily] = [
        .systemSmall, .systemMedium, .systemLarge, .systemExtraLarge, .systemExtraLargePortrait,
        .accessoryCircular, .accessoryRectangular, .accessoryCorner, .accessoryInline,
    ]
    static let locations: [WidgetLocation] = [
        .homeScreen, .lockScreen, .standBy, .carPlay, .iPhoneWidgetsOnMac, .smartStack, .watchFace,
        .desktop, .notificationCenter, .surface,
    ]
    static let system = families.filter { $0.rawValue.hasPrefix("system") }

    /// The availability table, with the columns iPhone, iPad, Apple Watch, Mac and Apple Vision
    /// Pro. Each place is a location and the first version of the system that has it.
    static let availability = """
        systemSmall | homeScreen.14 standBy.17 carPlay.26 iPhoneWidgetsOnMac.17 | homeScreen.14 \
        lockScreen.17 | | desktop.14 notificationCenter.11 | surface.26
        systemMedium | homeScreen.14 iPhoneWidgetsOnMac.17 | homeScreen.14 | | desktop.14 \
        notificationCenter.11 | surface.26
        systemLarge | homeScreen.14 iPhoneWidgetsOnMac.17 | homeScreen.14 | | desktop.14 \
        notificationCenter.11 | surface.26
        systemExtraLarge | | homeScreen.15 | | desktop.14 notificationCenter.14 | surface.26
        systemExtraLargePortrait | homeScreen.27 iPhoneWidgetsOnMac.27 | homeScreen.27 | | \
        desktop.27 notificationCenter.27 | surface.26
        accessoryCircular | lockScreen.16 | lockScreen.17 | watchFace.9 smartStack.10 | | surface.27
        accessoryRectangular | lockScreen.16 | lockScreen.17 | watchFace.9 smartStack.10 | | \
        surface.27
        accessoryCorner | | | watchFace.9 | |
        accessoryInline | lockScreen.16 | lockScreen.17 | watchFace.9 | |
        """

    struct Place: Hashable {
        var family: WidgetFamily
        var platform: WidgetDevice.Platform
        var location: WidgetLocation
    }

    /// The first system version of each place that exists.
    static let since: [Place: Int] = {
        var since: [Place: Int] = [:]
        for line in availability.split(separator: "\n") {
            let columns = line.split(separator: "|", omittingEmptySubsequences: false).map {
                $0.split(separator: " ").map(String.init)
            }
            for (platform, column) in zip(WidgetDevice.Platform.allCases, columns.dropFirst()) {
                for text in column {
                    let parts = text.split(separator: ".").map(String.init)
                    let place = Place(
                        family: WidgetFamily(rawValue: columns[0].joined()), platform: platform,
                        location: WidgetLocation(rawValue: parts[0]))
                    since[place] = Int(parts[1])
                }
            }
        }
        return since
    }()

    /// The table of rendering modes: "Yes" everywhere but for three families in full color.
    static func modes(of family: WidgetFamily) -> Set<WidgetRenderingMode> {
        switch family {
        case .accessoryCircular, .accessoryCorner, .accessoryInline: [.accented, .vibrant]
        default: [.fullColor, .accented, .vibrant]
        }
    }

    /// The modes that the articles' texts give for a location, or all modes where they give none.
    static func modes(at location: WidgetLocation) -> Set<WidgetRenderingMode> {
        switch location {
        case .homeScreen, .notificationCenter: [.fullColor, .accented]
        case .lockScreen: [.vibrant]
        case .standBy: [.fullColor, .vibrant]
        case .carPlay: [.fullColor]
        default: [.fullColor, .accented, .vibrant]
        }
    }

    /// Every combination of a family, a platform and a location, whether it exists or not.
    static let combinations: [Place] = families.flatMap { family in
        WidgetDevice.Platform.allCases.flatMap { platform in
            locations.map { Place(family: family, platform: platform, location: $0) }
        }
    }

    /// The combinations that exist.
    static let places = combinations.filter { since[$0] != nil }
}

/// Returns the error that `body` throws, or `nil` when it throws none.
func refusal(_ body: () throws(UnsupportedContext) -> Void) -> UnsupportedContext? {
    do {
        try body()
        return nil
    } catch {
        return error
    }
}

private struct DrawnView: View {
    @Environment(\.widgetRenderingMode) var mode
    @Environment(\.colorScheme) var scheme
    @Environment(\.isLuminanceReduced) var isDim
    @Environment(\.location) var location

    var body: some View {
        Text("\(mode) \(scheme) \(isDim) \(location)")
        Text("secret").privacySensitive()
    }
}

/// Tests for "Understand the role of app intents": wherever a system shows a widget, it shows the
/// archived drawing.
@Suite struct DrawnContextsTests {
    /// For every family on every device, in every state, the archived drawing equals a fresh one.
    @Test func whereverAWidgetCanBeThereIsADrawing() async throws {
        let rules = WidgetContextRules()
        var shown = 0
        for family in WidgetFamily.allCases {
            let info = WidgetInfo(kind: "k", family: family)
            let runtime = try WidgetDeclarations([
                StaticConfiguration(kind: "k", provider: TapProvider(list: "")) { _ in DrawnView() }
            ])
            let timeline = try await runtime.timeline(of: info)
            for platform in WidgetDevice.Platform.allCases {
                let device = WidgetDevice(platform)
                let archive = try runtime.archive(timeline, of: info, on: device)
                let placeholder = try runtime.archivedPlaceholder(of: info, on: device)
                for environment in everyEnvironment(of: info, on: device, rules) {
                    shown += 1
                    let isPlaceholder = environment.redactionReasons.contains(.placeholder)
                    let node = (isPlaceholder ? placeholder : archive).node(
                        at: .now, in: environment)
                    #expect(node == environment.draw { DrawnView() }, "\(environment)")
                    #expect(placeholder.node(at: .now, in: environment) != nil)
                }
            }
        }
        #expect(shown > 500)
    }

    private func everyEnvironment(
        of info: WidgetInfo, on device: WidgetDevice, _ rules: WidgetContextRules
    ) -> Set<WidgetEnvironment> {
        var environments: Set<WidgetEnvironment> = []
        let places = WidgetContextTable.places[info.family] ?? []
        for location in Set(places.filter { $0.platform == device.platform }.map(\.location)) {
            for lock in DeviceLock.allCases {
                for bits in 0..<32 {
                    let modes = WidgetRenderingMode.allCases
                    for mode in [nil, modes[0], modes[1], modes[2]] {
                        let state = WidgetDeviceState(
                            lock: lock, isAlwaysOn: bits & 1 > 0, isLowLight: bits & 2 > 0,
                            colorScheme: bits & 4 > 0 ? .dark : .light, renderingMode: mode,
                            sensitiveContent: SensitiveContentSettings(
                                showsOnLockScreen: bits & 8 > 0, showsInAlwaysOn: bits & 16 > 0,
                                hiddenComplications: bits & 8 > 0 ? .all : .kinds([])))
                        if let environment = try? rules.environment(
                            of: info, with: WidgetTraits(), at: location, on: device,
                            state: state)
                        {
                            environments.insert(environment)
                        }
                    }
                }
            }
        }
        return environments
    }
}

@Suite("Review widgets that support interactive views")
struct ReviewWidgetsThatSupportInteractiveViewsTests {
    let rules = WidgetContextRules()

    @Test func theArticlesFamiliesHaveButtonsAndToggles() throws {
        for place in Articles.combinations {
            let isOnPhoneOrPad = [.iOS, .iPadOS].contains(place.platform)
            for lock in DeviceLock.allCases {
                let expected: InteractionRefusal? =
                    switch place.family.rawValue {
                    case "accessoryInline", "accessoryCorner": .family(place.family)
                    case "accessoryCircular" where !isOnPhoneOrPad,
                        "accessoryRectangular" where !isOnPhoneOrPad:
                        .platform(place.family, place.platform)
                    default: lock == .unlocked ? nil : .locked
                    }
                let refusal = rules.interactionRefusal(
                    for: place.family, on: place.platform, lock: lock)
                #expect(refusal == expected, "\(place) \(lock)")
                guard Articles.since[place] != nil else { continue }
                let environment = try rules.environment(
                    of: WidgetInfo(kind: "w", family: place.family), with: WidgetTraits(),
                    at: place.location, on: WidgetDevice(place.platform),
                    state: WidgetDeviceState(lock: lock))
                #expect(environment.interactionRefusal == expected, "\(place) \(lock)")
                #expect(environment.isInteractive == (expected == nil))
            }
        }
    }

    @Test func aFamilyNotInTheArticleHasNone() {
        let family = WidgetFamily(rawValue: "systemGigantic")
        #expect(
            rules.interactionRefusal(for: family, on: .iOS, lock: .unlocked) == .family(family))
    }

    /// The heading "Respond to user interactions", with the choices that the rules state.
    @Test func linksWorkInTheLargerFamilies() {
        #expect(rules.linkFamilies == Set(Articles.system).subtracting([.systemSmall]))
    }
}
