import Testing
import TimelineClient

@Suite("Review widgets that support interactive views")
struct ReviewWidgetsThatSupportInteractiveViewsTests {
    let rules = WidgetContextRules()

    @Test func theArticlesFamiliesHaveButtonsAndToggles() {
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
                    for: place.family, at: place.location, on: place.platform, lock: lock)
                #expect(refusal == expected, "\(place) \(lock)")
            }
        }
    }

    @Test func theContentSeesWhetherTheyWork() throws {
        for place in Articles.places {
            for lock in DeviceLock.allCases {
                let environment = try rules.environment(
                    of: WidgetInfo(kind: "w", family: place.family), with: WidgetTraits(),
                    at: place.location, on: WidgetDevice(place.platform),
                    state: WidgetDeviceState(lock: lock))
                let refusal = rules.interactionRefusal(
                    for: place.family, at: place.location, on: place.platform, lock: lock)
                #expect(environment.interactionRefusal == refusal)
                #expect(environment.isInteractive == (refusal == nil))
            }
        }
    }

    @Test func aFamilyNotInTheArticleHasNone() {
        let family = WidgetFamily(rawValue: "systemGigantic")
        #expect(
            rules.interactionRefusal(for: family, at: .homeScreen, on: .iOS, lock: .unlocked)
                == .family(family))
    }

    @Test func aRefusalSaysWhy() {
        #expect(
            InteractionRefusal.platform(.accessoryCircular, .watchOS).description
                == "accessoryCircular is for buttons and toggles on iPhone and iPad only, "
                + "not on Apple Watch")
        #expect(
            InteractionRefusal.family(.accessoryInline).description
                == "accessoryInline is not for buttons and toggles")
        #expect(
            InteractionRefusal.locked.description
                == "buttons and toggles are inactive until the person unlocks the device")
    }
}

@Suite("Support interactive widgets in CarPlay")
struct SupportInteractiveWidgetsInCarPlayTests {
    @Test func interactionInCarPlayIsASetting() {
        var rules = WidgetContextRules()
        let refusal = { (rules: WidgetContextRules, location: WidgetLocation, lock: DeviceLock) in
            rules.interactionRefusal(for: .systemSmall, at: location, on: .iOS, lock: lock)
        }
        #expect(refusal(rules, .carPlay, .unlocked) == nil)
        #expect(refusal(rules, .carPlay, .lockedWithPasscode) == .locked)
        rules.allowsInteractionInCarPlay = false
        for lock in DeviceLock.allCases {
            #expect(refusal(rules, .carPlay, lock) == .location(.carPlay))
        }
        #expect(refusal(rules, .homeScreen, .unlocked) == nil)
        #expect(
            InteractionRefusal.location(.carPlay).description
                == "CarPlay is not for buttons and toggles")
    }
}
