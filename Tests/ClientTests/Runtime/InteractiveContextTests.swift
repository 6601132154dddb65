import Testing
import WidgetViews

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
