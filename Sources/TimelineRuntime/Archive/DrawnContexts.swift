import Foundation
import WidgetViews

extension WidgetContextRules {
    /// Returns one environment for each context in which a widget can be shown on `device`: every
    /// location and rendering mode, light and dark, in Always On or not, near or far away, with
    /// sensitive content shown or hidden. Excludes the placeholder, which is drawn separately.
    public func drawnEnvironments(
        of widget: WidgetInfo, with traits: WidgetTraits, on device: WidgetDevice
    ) -> [WidgetEnvironment] {
        var environments: [WidgetEnvironment] = []
        var drawn: Set<TimelineArchive.Context> = []
        let hidden = SensitiveContentSettings(
            showsOnLockScreen: false, showsInAlwaysOn: false, hiddenComplications: .all)
        for scheme in ColorScheme.allCases {
            // No display is in Always On where a person's distance counts.
            for (isAlwaysOn, detail) in [
                (false, LevelOfDetail.default), (true, .default), (false, .simplified),
            ] {
                for sensitive in [SensitiveContentSettings(), hidden] {
                    var state = WidgetDeviceState(
                        // The Lock Screen of an unlocked device hides nothing.
                        lock: sensitive == hidden ? .lockedWithoutPasscode : .unlocked,
                        isAlwaysOn: isAlwaysOn, colorScheme: scheme, sensitiveContent: sensitive)
                    state.levelOfDetail = detail
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

    /// Returns the same contexts for the placeholder, which does not depend on hidden content.
    func placeholderEnvironments(
        of widget: WidgetInfo, with traits: WidgetTraits, on device: WidgetDevice
    ) -> [WidgetEnvironment] {
        drawnEnvironments(of: widget, with: traits, on: device).compactMap { environment in
            guard !environment.redactionReasons.contains(.privacy) else { return nil }
            var environment = environment
            environment.redactionReasons = .placeholder
            return environment
        }
    }
}
