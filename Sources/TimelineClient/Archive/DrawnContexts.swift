import Foundation

extension WidgetContextRules {
    /// One environment for each context a widget can be shown in on `device`: every place and mode,
    /// by day and by night, in Always On, and with what is sensitive hidden. The placeholder has
    /// none: it is drawn by itself.
    public func drawnEnvironments(
        of widget: WidgetInfo, with traits: WidgetTraits, on device: WidgetDevice
    ) -> [WidgetEnvironment] {
        var environments: [WidgetEnvironment] = []
        var drawn: Set<TimelineArchive.Context> = []
        let hidden = SensitiveContentSettings(
            showsOnLockScreen: false, showsInAlwaysOn: false, hiddenComplications: .all)
        for scheme in ColorScheme.allCases {
            for isAlwaysOn in [false, true] {
                for sensitive in [SensitiveContentSettings(), hidden] {
                    let state = WidgetDeviceState(
                        // The Lock Screen of a device in use shows everything.
                        lock: sensitive == hidden ? .lockedWithoutPasscode : .unlocked,
                        isAlwaysOn: isAlwaysOn, colorScheme: scheme, sensitiveContent: sensitive)
                    for environment in self.environments(
                        of: widget, with: traits, on: device, state: state)
                    where !environment.redactionReasons.contains(.placeholder)
                        && drawn.insert(.init(environment)).inserted
                    {
                        environments.append(environment)
                    }
                }
            }
        }
        return environments
    }

    /// The same contexts for the placeholder, which looks alike whatever people hide.
    func placeholderEnvironments(
        of widget: WidgetInfo, with traits: WidgetTraits, on device: WidgetDevice
    ) -> [WidgetEnvironment] {
        var environments: [WidgetEnvironment] = []
        for scheme in ColorScheme.allCases {
            for isAlwaysOn in [false, true] {
                let state = WidgetDeviceState(isAlwaysOn: isAlwaysOn, colorScheme: scheme)
                for location in Set(
                    WidgetContextTable.places[widget.family]?.map(\.location) ?? [])
                {
                    for mode in renderingModes(of: widget.family, at: location) {
                        var state = state
                        state.renderingMode = mode
                        if let environment = try? environment(
                            of: widget, with: traits, at: location, on: device, state: state,
                            hasContent: false)
                        {
                            environments.append(environment)
                        }
                    }
                }
            }
        }
        return environments
    }
}
