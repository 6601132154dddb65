import WidgetModel
import WidgetViews

/// The choices for adding a configurable widget (article "Making a configurable widget", "Offer
/// configurable widgets and complications on Apple Watch").
public enum RecommendationOffer: Sendable, Equatable {
    /// The person chooses one of these ready-made configurations.
    case preconfigured([RecommendationSet.Item])
    /// The person configures the widget.
    case configurable
    /// The widget cannot be added: no configuration is recommended, and watchOS 11 and older have
    /// no user interface for one.
    case none
}

extension WidgetDeclarations {
    /// Returns the choices for adding a widget of a kind on `device`.
    ///
    /// - Throws: ``WidgetFailure`` when the kind is not declared; or the error of its provider.
    public func offer(
        ofKind kind: String, on device: WidgetDevice
    ) async throws -> RecommendationOffer {
        guard traits(ofKind: kind) != nil else {
            throw WidgetFailure(description: "the app declares no widget of this kind")
        }
        guard Self.recommends(on: device.platform),
            let items = try await recommendations(ofKind: kind)
        else { return .configurable }
        if !items.isEmpty { return .preconfigured(items) }
        return device.has(major: 26) ? .configurable : .none
    }

    /// Returns whether recommendations are requested: on watchOS, and outside Apple's platforms,
    /// where the app decides. On the others people configure every widget themselves.
    static func recommends(on platform: WidgetDevice.Platform?) -> Bool {
        platform == .watchOS || platform == nil
    }
}
