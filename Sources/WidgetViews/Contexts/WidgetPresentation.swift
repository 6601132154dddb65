/// The form in which a widget is shown.
public enum WidgetPresentation: Sendable, Hashable, CaseIterable {
    /// The timeline's entry.
    case content
    /// The timeline's entry with sensitive content hidden.
    case redacted
    /// The provider's placeholder, with nothing of the timeline.
    case placeholder

    /// The reasons that the content finds in its environment.
    public var redactionReasons: RedactionReasons {
        switch self {
        case .content: []
        case .redacted: .privacy
        case .placeholder: .placeholder
        }
    }
}

extension WidgetContextRules {
    /// Returns the form in which a widget of this kind is shown. Sources: "Display a placeholder
    /// widget", "Hide sensitive content".
    ///
    /// - Parameter hasContent: Whether a timeline of the widget can be shown.
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
