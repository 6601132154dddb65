import WidgetModel

/// What a person can add of a configurable widget (article "Making a configurable widget", "Offer
/// configurable widgets and complications on Apple Watch").
public enum RecommendationOffer: Sendable, Equatable {
    /// Ready-made configurations, to choose one of.
    case preconfigured([RecommendationSet.Item])
    /// The widget, which the person configures.
    case configurable
    /// Nothing: no configuration is recommended, and watchOS 11 and older cannot ask for one.
    case none
}

extension WidgetRuntime {
    /// What a person can add of a kind on `device`.
    ///
    /// - Throws: ``Failure`` when the kind is not declared, or what its provider throws.
    public func offer(
        ofKind kind: String, on device: WidgetDevice
    ) async throws -> RecommendationOffer {
        guard traits(ofKind: kind) != nil else {
            throw Failure(description: "the app declares no widget of this kind")
        }
        guard Self.recommends(on: device.platform),
            let items = try await recommendations(ofKind: kind)
        else { return .configurable }
        if !items.isEmpty { return .preconfigured(items) }
        return device.has(major: 26) ? .configurable : .none
    }

    /// Whether recommendations are asked for: elsewhere people configure every widget themselves.
    /// On platforms that are not Apple's, that is the app's to know.
    static func recommends(on platform: WidgetDevice.Platform?) -> Bool {
        platform == .watchOS || platform == nil
    }
}
