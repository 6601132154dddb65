import Foundation
import TimelineRuntime

/// A person's settings that change a picture, and the moment that it shows.
struct PictureSettings: Sendable {
    var timeZone = TimeZone.current
    /// The tint of the accented and the vibrant mode; `nil` for the default.
    var tint: Ink?
    /// Whether an update is pending: content marked as invalidatable shows that.
    var isPending = false
    /// The time that self-updating content counts from.
    var now = Date.now

    /// The filled part of a gauge, 0 to 1; for a self-updating gauge, the part at `now`.
    func fraction(_ stated: Double, _ style: WidgetStyle) -> Double {
        guard let start = style.number(.liveFrom), let end = style.number(.liveTo), start < end
        else { return min(max(stated, 0), 1) }
        let share = min(max((now.timeIntervalSince1970 - start) / (end - start), 0), 1)
        return style.isOn(.countsDown) ? 1 - share : share
    }

    /// Returns a self-updating date as it is shown now.
    func text(
        of date: Date, _ format: WidgetNode.DateStyle, _ style: WidgetStyle, _ locale: Locale
    ) -> String {
        // A clock between two dates stands still before the first and after the last.
        let pause = style.number(.livePause).map(Date.init(timeIntervalSince1970:)) ?? now
        let now = min(now, pause)
        let start = style.number(.liveFrom).map(Date.init(timeIntervalSince1970:)) ?? now
        let end = style.number(.liveTo).map(Date.init(timeIntervalSince1970:)) ?? now
        let seconds = date.timeIntervalSince(max(start, min(now, end))).rounded()
        // A provider may name any date, also one that no calendar has.
        let longest = 200_000_000_000.0
        guard abs(seconds) < longest, abs(date.timeIntervalSince1970) < longest else { return "—" }
        let distance = Duration.seconds(abs(seconds))
        let units = Duration.UnitsFormatStyle.units(
            allowed: [.days, .hours, .minutes, .seconds], width: .abbreviated,
            maximumUnitCount: format == .relative ? 2 : 1
        ).locale(locale)
        switch format {
        case .date, .time:
            return date.formatted(
                Date.FormatStyle(
                    date: format == .date ? .long : .omitted,
                    time: format == .date ? .omitted : .shortened, locale: locale,
                    calendar: Calendar(identifier: .gregorian), timeZone: timeZone))
        case .relative: return distance.formatted(units)
        case .offset: return (seconds < 0 ? "-" : "+") + distance.formatted(units)
        case .timer:
            let hasHours = abs(seconds) >= 3_600 && style[.showsHours] != .flag(false)
            return distance.formatted(
                .time(pattern: hasHours ? .hourMinuteSecond : .minuteSecond).locale(locale))
        }
    }
}

/// The space that a device gives its widgets, from the tables of Apple's design guidelines: an
/// iPhone of 390 × 844 points, an iPad of 834 × 1194, a watch of 45 mm, Apple Vision Pro. There is
/// no table for Macs, where each family has its own size. How much StandBy and CarPlay scale small
/// widgets is this program's choice.
enum PictureSizes {
    static func rules(on device: WidgetDevice) -> WidgetContextRules {
        var rules = WidgetContextRules()
        rules.availableSizes = spaces(on: device.platform)
        return rules
    }

    static func spaces(
        on platform: WidgetDevice.Platform
    ) -> [WidgetLocation: [WidgetFamily: CGSize]] {
        table.filter { $0.0.contains(platform) }.reduce(into: [:]) { spaces, row in
            spaces[row.1, default: [:]][row.2] = CGSize(width: row.3, height: row.4)
        }
    }

    private static let table:
        [([WidgetDevice.Platform], WidgetLocation, WidgetFamily, Double, Double)] = [
            ([.iOS, .iPadOS], .lockScreen, .accessoryCircular, 72, 72),
            ([.iOS, .iPadOS], .lockScreen, .accessoryRectangular, 160, 72),
            ([.iOS, .iPadOS], .lockScreen, .accessoryInline, 234, 26),
            ([.iOS], .standBy, .systemSmall, 340, 340),
            ([.iOS], .carPlay, .systemSmall, 240, 240),
            ([.iPadOS], .lockScreen, .systemSmall, 155, 155),
            ([.iPadOS], .homeScreen, .systemSmall, 155, 155),
            ([.iPadOS], .homeScreen, .systemMedium, 342, 155),
            ([.iPadOS], .homeScreen, .systemLarge, 342, 342),
            ([.iPadOS], .homeScreen, .systemExtraLarge, 715.5, 342),
            ([.watchOS], .smartStack, .accessoryRectangular, 184, 80.5),
            ([.watchOS], .watchFace, .accessoryCircular, 50, 50),
            ([.visionOS], .surface, .systemExtraLarge, 450, 338),
            ([.visionOS], .surface, .systemExtraLargePortrait, 338, 450),
        ]
}
