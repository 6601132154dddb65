/// Every bound on what a peer may send, with its unit in its name. All are configurable; the
/// defaults are the design's (section 5).
public struct Limits: Sendable, Equatable {
    /// One event as it stands on the wire. CloudEvents asks consumers to accept at least 64 KiB.
    public var eventBytesMax = 64 * 1024
    /// Events of one post.
    public var postEventsMax = 1_000
    /// Body of one post.
    public var postBytesMax = 8 * 1024 * 1024
    /// A catalog document.
    public var catalogBytesMax = 1024 * 1024
    /// Widget kinds of one catalog.
    public var catalogKindsMax = 500
    /// Rules of one kind (timeline and recommendations apart).
    public var kindRulesMax = 32
    /// A registration document.
    public var registrationBytesMax = 256 * 1024
    /// Widgets, and separately controls, of one registration.
    public var registrationWidgetsMax = 200
    /// Recommended items of one kind.
    public var recommendationItemsMax = 100
    /// Delivery entries of one registration.
    public var deliveriesMax = 8
    /// Keys one configured widget may depend on.
    public var widgetKeysMax = 256
    /// Keys one client may depend on.
    public var clientKeysMax = 1_000
    /// Names, identifiers and values.
    public var stringBytesMax = 256
    /// Values of one list (array parameter, attribute).
    public var listValuesMax = 64
    /// Attributes of one change or client.
    public var attributesMax = 32
    /// Properties of one change or entity.
    public var propertiesMax = 128
    /// Bindings of one rule.
    public var bindingsMax = 4
    /// Combinations of values that one change may have at the bindings of one rule.
    public var changeRuleKeysMax = 64
    /// Keys one change may raise by all rules, those of unset parameters included; and keys that any
    /// change of an entity would raise by the rules of a catalog.
    public var changeKeysMax = 10_000
    /// Keys the changes of one post may raise.
    public var postKeysMax: Int {
        changeKeysMax.multipliedReportingOverflow(by: 20).overflow ? .max : changeKeysMax * 20
    }

    /// The defaults.
    public init() {}

    /// No bounds, for documents that were accepted before: a limit that was lowered since must
    /// not make them unreadable.
    public static let none: Limits = {
        var limits = Limits()
        for bound in [
            \Limits.eventBytesMax, \.postEventsMax, \.postBytesMax, \.catalogBytesMax,
            \.catalogKindsMax, \.kindRulesMax, \.registrationBytesMax, \.registrationWidgetsMax,
            \.recommendationItemsMax, \.deliveriesMax, \.widgetKeysMax, \.clientKeysMax,
            \.stringBytesMax, \.listValuesMax, \.attributesMax, \.propertiesMax, \.bindingsMax,
            \.changeRuleKeysMax, \.changeKeysMax,
        ] {
            limits[keyPath: bound] = .max
        }
        return limits
    }()
}
