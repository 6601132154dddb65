/// The limits of input from peers, each with its unit in its name. Some have no option.
public struct Limits: Sendable, Equatable {
    /// The limit of one event as sent. CloudEvents requires consumers to accept at least 64 KiB.
    public var eventBytesMax = 64 * 1024
    /// The limit of events in one request.
    public var postEventsMax = 1_000
    /// The limit of the body of a request with changes.
    public var postBytesMax = 8 * 1024 * 1024
    /// The limit of a catalog document.
    public var catalogBytesMax = 1024 * 1024
    /// The limit of widget kinds in one catalog.
    public var catalogKindsMax = 500
    /// The limit of rules for one kind, separately for timelines and recommendations.
    public var kindRulesMax = 32
    /// The limit of a registration document.
    public var registrationBytesMax = 256 * 1024
    /// The limit of widgets, and separately of controls, in one registration.
    public var registrationWidgetsMax = 200
    /// The limit of Live Activities, and separately of types that can be started, in one
    /// registration.
    public var registrationActivitiesMax = 16
    /// The limit of the attributes of one Live Activity, which the gateway posts and keeps. A push
    /// holds half as much; numbers grow to texts.
    public var activityBytesMax = 8_192
    /// The limit of a request to start Live Activities, most of which becomes part of a push.
    public var startBytesMax = 3_072
    /// The limit of recommended items for one kind.
    public var recommendationItemsMax = 100
    /// The limit of delivery addresses in one registration.
    public var deliveriesMax = 8
    /// The limit of different delivery addresses in one registration, those of its controls and
    /// activities included.
    public var pushAddressesMax = 64
    /// The limit of keys that one configured widget depends on.
    public var widgetKeysMax = 256
    /// The limit of keys that one client depends on.
    public var clientKeysMax = 1_000
    /// The limit of a name, identifier or value.
    public var stringBytesMax = 256
    /// The limit of values in one list (array parameter or attribute).
    public var listValuesMax = 64
    /// The limit of attributes of one change or client.
    public var attributesMax = 32
    /// The limit of properties of one change or entity.
    public var propertiesMax = 128
    /// The limit of bindings in one rule.
    public var bindingsMax = 4
    /// The limit of combinations of a change's values at the bindings of one rule.
    public var changeRuleKeysMax = 64
    /// The limit of keys that one change bumps by all rules, including the keys for unset
    /// parameters. A catalog is rejected if the rules of one entity would exceed it.
    public var changeKeysMax = 10_000
    /// The limit of keys that the changes of one request bump.
    public var postKeysMax: Int {
        changeKeysMax.multipliedReportingOverflow(by: 20).overflow ? .max : changeKeysMax * 20
    }

    /// Creates the default limits.
    public init() {}

    /// No limits, for documents that were accepted before: lowering a limit must not make them
    /// unreadable.
    public static let none: Limits = {
        var limits = Limits()
        for bound in [
            \Limits.eventBytesMax, \.postEventsMax, \.postBytesMax, \.catalogBytesMax,
            \.catalogKindsMax, \.kindRulesMax, \.registrationBytesMax, \.registrationWidgetsMax,
            \.registrationActivitiesMax, \.activityBytesMax, \.startBytesMax,
            \.recommendationItemsMax, \.deliveriesMax, \.pushAddressesMax, \.widgetKeysMax,
            \.clientKeysMax,
            \.stringBytesMax, \.listValuesMax, \.attributesMax, \.propertiesMax, \.bindingsMax,
            \.changeRuleKeysMax, \.changeKeysMax,
        ] {
            limits[keyPath: bound] = .max
        }
        return limits
    }()
}
