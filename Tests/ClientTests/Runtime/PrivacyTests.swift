import Testing
import TimelineRuntime
import WidgetViews

/// The articles' sentences about levels and locks: the levels that a device in each state hides.
private let hidden: [DeviceLock: Set<DataProtection>] = [
    .unlocked: [],
    .lockedWithoutPasscode: [.complete],
    .lockedWithPasscode: [.complete, .completeUnlessOpen],
    .beforeFirstUnlock: [
        .complete, .completeUnlessOpen, .completeUntilFirstUserAuthentication, .none,
    ],
]

/// The headings "Display a placeholder widget" and "Hide sensitive content" of the article
/// "Creating a widget extension".
@Suite("Hide sensitive content") struct HideSensitiveContentTests {
    let rules = WidgetContextRules()

    /// Covers every place, lock, level, display state and choice of the person.
    @Test func whatIsShownFollowsTheArticle() throws {
        for place in Articles.places {
            for lock in DeviceLock.allCases {
                for level in DataProtection.allCases {
                    for choice in 0..<64 {
                        let hiddenComplications: SensitiveContentSettings.HiddenComplications =
                            switch choice & 24 {
                            case 0: .all
                            case 8: .kinds(["other", "w"])
                            default: .kinds(["other"])
                            }
                        let state = WidgetDeviceState(
                            lock: lock, isAlwaysOn: choice & 1 != 0,
                            sensitiveContent: SensitiveContentSettings(
                                showsOnLockScreen: choice & 2 != 0,
                                showsInAlwaysOn: choice & 4 != 0,
                                hiddenComplications: hiddenComplications))
                        let traits = WidgetTraits(
                            dataProtection: level, configuresRedaction: choice & 32 != 0)
                        let shown = [true, false].map { hasContent in
                            rules.presentation(
                                of: "w", with: traits, at: place.location, on: place.platform,
                                state: state, hasContent: hasContent)
                        }
                        let isChosen =
                            switch place.location {
                            case .watchFace, .smartStack: choice & 1 != 0 && choice & 16 == 0
                            case .lockScreen, .standBy:
                                (lock != .unlocked && choice & 2 == 0)
                                    || (choice & 1 != 0 && choice & 4 == 0)
                            default: false
                            }
                        let expected: WidgetPresentation =
                            if try #require(hidden[lock]).contains(level) {
                                .placeholder
                            } else if isChosen {
                                choice & 32 != 0 ? .redacted : .placeholder
                            } else {
                                .content
                            }
                        if shown != [expected, .placeholder] {
                            Issue.record("\(place) \(lock) \(level) \(choice): \(shown)")
                        }
                    }
                }
            }
        }
    }

    @Test func protectedWidgetsAreNotAvailableOnMac() throws {
        for place in Articles.places where place.location == .iPhoneWidgetsOnMac {
            for level in DataProtection.allCases {
                let refused = refusal { () throws(UnsupportedContext) in
                    try rules.check(
                        place.family, with: WidgetTraits(dataProtection: level),
                        at: .iPhoneWidgetsOnMac, on: WidgetDevice(.iOS))
                }
                let isProtected = level == .complete || level == .completeUnlessOpen
                #expect(refused == (isProtected ? .protectedFromMac(level) : nil))
                let gallery = rules.gallery(
                    of: [level], at: .iPhoneWidgetsOnMac, on: WidgetDevice(.iOS),
                    traits: { WidgetTraits(dataProtection: $0) })
                #expect(gallery.suggested.isEmpty == isProtected)
            }
        }
    }

    @Test func filesThatCannotBeReadKeepTheTimelineUntilUnlock() throws {
        for lock in DeviceLock.allCases {
            for level in DataProtection.allCases {
                let isUnreadable = try #require(hidden[lock]).contains(level) && level != .none
                #expect(
                    level.rebuildPermission(while: lock) == (isUnreadable ? .afterUnlock : .now),
                    "\(lock) \(level)")
            }
        }
    }
}
