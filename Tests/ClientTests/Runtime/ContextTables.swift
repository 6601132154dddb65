import WidgetModel
import WidgetViews

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
