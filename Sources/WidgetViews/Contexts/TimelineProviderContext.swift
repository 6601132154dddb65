import Foundation

/// The context in which a provider builds a widget.
public struct TimelineProviderContext: Sendable, Hashable {
    /// The environments in which the widget may be shown: `environmentVariants.colorScheme` has
    /// each color scheme once.
    @dynamicMemberLookup
    public struct EnvironmentVariants: Sendable, Hashable {
        let family: WidgetFamily

        /// The values that a property of the environment may have, in the order of the tables;
        /// `nil` for a family without a place.
        public subscript<Value: Hashable>(
            dynamicMember keyPath: KeyPath<WidgetEnvironment, Value>
        ) -> [Value]? {
            var values: [Value] = []
            for platform in WidgetDevice.Platform.allCases {
                for scheme in ColorScheme.allCases {
                    let environments = WidgetContextRules().environments(
                        of: WidgetInfo(kind: "", family: family), with: WidgetTraits(),
                        on: WidgetDevice(platform), state: WidgetDeviceState(colorScheme: scheme))
                    for value in environments.map({ $0[keyPath: keyPath] })
                    where !values.contains(value) {
                        values.append(value)
                    }
                }
            }
            return values.isEmpty ? nil : values
        }
    }

    /// The widget's family.
    public var family: WidgetFamily
    /// Whether the entry is for a gallery: the provider must answer quickly and may return sample
    /// data.
    public var isPreview: Bool
    /// The widget's size, in points.
    public var displaySize: CGSize
    /// The environments in which the widget may be shown.
    public var environmentVariants: EnvironmentVariants { EnvironmentVariants(family: family) }

    /// Creates a context.
    ///
    /// - Parameter displaySize: The widget's size in points; `nil` for the size of the family.
    public init(family: WidgetFamily, isPreview: Bool = false, displaySize: CGSize? = nil) {
        self.family = family
        self.isPreview = isPreview
        self.displaySize = displaySize ?? family.displaySize
    }
}
