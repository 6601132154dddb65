/// Why content must not be recognisable.
public struct RedactionReasons: OptionSet, Sendable, Hashable {
    /// The reasons as bits.
    public let rawValue: Int

    /// The reasons of these bits.
    public init(rawValue: Int) {
        self.rawValue = rawValue
    }

    /// Everything is generic: what is shown is the provider's placeholder.
    public static let placeholder = RedactionReasons(rawValue: 1)
    /// What is marked as sensitive must be hidden.
    public static let privacy = RedactionReasons(rawValue: 2)
}

/// What is shown of a widget.
public enum WidgetPresentation: Sendable, Hashable, CaseIterable {
    /// The timeline's entry.
    case content
    /// The timeline's entry, with what is sensitive hidden.
    case redacted
    /// The provider's placeholder, and nothing of the timeline.
    case placeholder

    /// What the content is told.
    public var redactionReasons: RedactionReasons {
        switch self {
        case .content: []
        case .redacted: .privacy
        case .placeholder: .placeholder
        }
    }
}

extension WidgetContextRules {
    /// What is shown of a widget of this kind. Sources: "Display a placeholder widget", "Hide
    /// sensitive content".
    ///
    /// - Parameter hasContent: Whether a timeline of the widget is there to be shown.
    public func presentation(
        of kind: String, with traits: WidgetTraits, at location: WidgetLocation,
        on platform: WidgetDevice.Platform, state: WidgetDeviceState, hasContent: Bool = true
    ) -> WidgetPresentation {
        guard hasContent, !traits.dataProtection.hidesContent(while: state.lock) else {
            return .placeholder
        }
        guard hidesSensitiveContent(of: kind, at: location, on: platform, state: state) else {
            return .content
        }
        return traits.configuresRedaction ? .redacted : .placeholder
    }

    private func hidesSensitiveContent(
        of kind: String, at location: WidgetLocation, on platform: WidgetDevice.Platform,
        state: WidgetDeviceState
    ) -> Bool {
        let settings = state.sensitiveContent
        if platform == .watchOS {
            return state.isAlwaysOn && settings.hidesComplication(of: kind)
        }
        guard sensitiveLockScreenLocations.contains(location) else { return false }
        return (state.lock != .unlocked && !settings.showsOnLockScreen)
            || (state.isAlwaysOn && !settings.showsInAlwaysOn)
    }
}
