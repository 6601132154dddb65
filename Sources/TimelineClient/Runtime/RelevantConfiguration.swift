import Foundation
import WidgetModel

/// A configuration with a time at which it is relevant.
public struct RelevantConfiguration: Sendable, Hashable {
    /// The values of the intent; empty for a widget without configuration.
    public var configuration: [String: ParameterValue]
    /// The time at which it is relevant.
    public var context: RelevantContext

    /// Returns whether a placed widget has this configuration. A missing value equals an unset one.
    func isConfiguration(of widget: WidgetInfo) -> Bool {
        configuration.filter { $0.value != .unset }
            == widget.configuration.filter { $0.value != .unset }
    }
}
