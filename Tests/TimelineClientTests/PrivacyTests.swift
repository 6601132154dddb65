import Testing
import TimelineClient

/// The articles' sentences about levels and locks: the levels that a device in each state hides.
private let hidden: [DeviceLock: Set<DataProtection>] = [
    .unlocked: [],
    .lockedWithoutPasscode: [.complete],
    .lockedWithPasscode: [.complete, .completeUnlessOpen],
    .beforeFirstUnlock: [
        .complete, .completeUnlessOpen, .completeUntilFirstUserAuthentication, .none,
    ],
]

@Suite("Display a placeholder widget")
struct DisplayAPlaceholderWidgetTests {
    let rules = WidgetContextRules()

    @Test func withoutATimelineThereIsOnlyThePlaceholder() throws {
        for place in Articles.places {
            for lock in DeviceLock.allCases {
                let environment = try rules.environment(
                    of: WidgetInfo(kind: "w", family: place.family), with: WidgetTraits(),
                    at: place.location, on: WidgetDevice(place.platform),
                    state: WidgetDeviceState(lock: lock), hasContent: false)
                #expect(environment.redactionReasons == .placeholder)
            }
        }
    }

    @Test func untilTheDeviceIsUnlockedAsTheLevelAsksForThePlaceholderIsShown() throws {
        for place in Articles.places {
            for lock in DeviceLock.allCases {
                for level in DataProtection.allCases {
                    let traits = WidgetTraits(dataProtection: level)
                    if place.location == .iPhoneWidgetsOnMac,
                        [.complete, .completeUnlessOpen].contains(level)
                    {
                        continue
                    }
                    let environment = try rules.environment(
                        of: WidgetInfo(kind: "w", family: place.family), with: traits,
                        at: place.location, on: WidgetDevice(place.platform),
                        state: WidgetDeviceState(lock: lock))
                    let isHidden = try #require(hidden[lock]).contains(level)
                    #expect(
                        environment.redactionReasons == (isHidden ? .placeholder : []),
                        "\(place) \(lock) \(level)")
                }
            }
        }
    }

    @Test func everyPresentationHasItsRedaction() {
        #expect(WidgetPresentation.content.redactionReasons == [])
        #expect(WidgetPresentation.redacted.redactionReasons == .privacy)
        #expect(WidgetPresentation.placeholder.redactionReasons == .placeholder)
        #expect(RedactionReasons.privacy.isDisjoint(with: .placeholder))
    }
}

@Suite("Hide sensitive content")
struct HideSensitiveContentTests {
    let rules = WidgetContextRules()

    @Test func theLevelsAreTheEntitlements() {
        #expect(
            DataProtection.allCases.map(\.rawValue) == [
                "NSFileProtectionComplete", "NSFileProtectionCompleteUnlessOpen",
                "NSFileProtectionCompleteUntilFirstUserAuthentication", "NSFileProtectionNone",
            ])
    }

    /// Covers every place, lock, level, display state and choice of the person.
    @Test func whatIsShownFollowsTheArticle() throws {
        for place in Articles.places {
            for lock in DeviceLock.allCases {
                for level in DataProtection.allCases {
                    for choice in 0..<32 {
                        let state = WidgetDeviceState(
                            lock: lock, isAlwaysOn: choice & 1 != 0,
                            sensitiveContent: SensitiveContentSettings(
                                showsOnLockScreen: choice & 2 != 0,
                                showsInAlwaysOn: choice & 4 != 0,
                                hiddenComplications: choice & 8 != 0 ? .all : .kinds(["other"])))
                        let traits = WidgetTraits(
                            dataProtection: level, configuresRedaction: choice & 16 != 0)
                        let shown = rules.presentation(
                            of: "w", with: traits, at: place.location, on: place.platform,
                            state: state)
                        let isChosen =
                            switch place.location {
                            case .watchFace, .smartStack: choice & 1 != 0 && choice & 8 != 0
                            case .lockScreen, .standBy:
                                (lock != .unlocked && choice & 2 == 0)
                                    || (choice & 1 != 0 && choice & 4 == 0)
                            default: false
                            }
                        let expected: WidgetPresentation =
                            if try #require(hidden[lock]).contains(level) {
                                .placeholder
                            } else if isChosen {
                                choice & 16 != 0 ? .redacted : .placeholder
                            } else {
                                .content
                            }
                        if shown != expected {
                            Issue.record("\(place) \(lock) \(level) \(choice): \(shown)")
                        }
                    }
                }
            }
        }
    }

    @Test func individualComplicationsAreHidden() {
        let state = WidgetDeviceState(
            isAlwaysOn: true,
            sensitiveContent: SensitiveContentSettings(hiddenComplications: .kinds(["balance"])))
        let shown = { (kind: String, state: WidgetDeviceState) in
            rules.presentation(
                of: kind, with: WidgetTraits(), at: .watchFace, on: .watchOS, state: state)
        }
        #expect(shown("balance", state) == .redacted)
        #expect(shown("weather", state) == .content)
        var awake = state
        awake.isAlwaysOn = false
        #expect(shown("balance", awake) == .content)
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
        #expect(
            UnsupportedContext.protectedFromMac(.complete).description
                == "widgets with NSFileProtectionComplete are not available as iPhone widgets "
                + "on Mac")
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

    /// A timeline that cannot be rebuilt is not visible either: wherever a rebuild has to wait, the
    /// widget shows its placeholder anyway.
    @Test func aTimelineThatCannotBeRebuiltIsNotShown() {
        for lock in DeviceLock.allCases {
            for level in DataProtection.allCases
            where level.rebuildPermission(while: lock) == .afterUnlock {
                #expect(level.hidesContent(while: lock))
            }
        }
    }
}
