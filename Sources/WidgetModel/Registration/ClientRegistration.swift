/// What one client (an app installation on a device) registered: the widgets people configured,
/// the recommendation sets it offers, its controls, and how it can be told.
public struct ClientRegistration: Sendable, Hashable {
    /// WidgetKit's platform name, such as `iOS` or `watchOS`; open.
    public var platform: String
    /// The system's version, compared numerically.
    public var osVersion: OSVersion?
    /// The client's own attributes, such as its account.
    public var attributes: [String: [String]]
    /// The configured widgets; identical ones are counted, for they cannot be told apart.
    public var widgets: [ConfiguredWidget]
    /// The recommendation sets.
    public var recommendations: [RecommendationSet]
    /// The placed controls.
    public var controls: [PlacedControl]
    /// How the client is told, in the order of its preference.
    public var delivery: [DeliveryAddress]

    /// A registration, as a program states it.
    public init(
        platform: String, osVersion: OSVersion? = nil, attributes: [String: [String]] = [:],
        widgets: [ConfiguredWidget] = [], recommendations: [RecommendationSet] = [],
        controls: [PlacedControl] = [], delivery: [DeliveryAddress] = [.stream]
    ) {
        self.platform = platform
        self.osVersion = osVersion
        self.attributes = attributes
        self.widgets = widgets
        self.recommendations = recommendations
        self.controls = controls
        self.delivery = delivery
    }
}

/// A system version such as 26.1. watchOS 11 is followed by 26, so versions are compared by number
/// and never counted on.
public struct OSVersion: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The parts, trailing zeros dropped.
    public let parts: [Int]

    /// Reads `26`, `26.1` or `26.1.2`.
    public init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false).map { Int($0) }
        guard !parts.isEmpty, parts.count <= 4,
            parts.allSatisfy({ $0.map { $0 >= 0 } ?? false })
        else { return nil }
        var numbers = parts.compactMap { $0 }
        while numbers.count > 1, numbers.last == 0 { numbers.removeLast() }
        self.parts = numbers
    }

    /// Numeric order, part by part.
    public static func < (left: OSVersion, right: OSVersion) -> Bool {
        left.parts.lexicographicallyPrecedes(right.parts)
    }

    /// The version as written.
    public var description: String {
        parts.map(String.init).joined(separator: ".")
    }
}

/// A widget as a person configured it: kind, family and values. There is no instance id.
public struct ConfiguredWidget: Sendable, Hashable {
    /// The widget kind.
    public var kind: String
    /// The family; open.
    public var family: String
    /// The resolved intent parameters.
    public var parameters: [String: ParameterValue]
    /// How many identical ones are placed.
    public var count: Int

    /// A configured widget.
    public init(
        kind: String, family: String, parameters: [String: ParameterValue] = [:], count: Int = 1
    ) {
        self.kind = kind
        self.family = family
        self.parameters = parameters
        self.count = count
    }
}

/// What `recommendations()` of one kind returned. An empty set is a choice: the person configures
/// the widget.
public struct RecommendationSet: Sendable, Hashable {
    /// The widget kind.
    public var kind: String
    /// The recommended configurations, in order.
    public var items: [Item]
    /// The cursor the set was built at, as opaque text.
    public var builtAt: String?

    /// One recommended configuration (`AppIntentRecommendation`).
    public struct Item: Sendable, Hashable {
        /// The intent's parameters.
        public var parameters: [String: ParameterValue]
        /// The name people see.
        public var description: String

        /// A recommended configuration.
        public init(parameters: [String: ParameterValue], description: String) {
            self.parameters = parameters
            self.description = description
        }
    }

    /// A recommendation set.
    public init(kind: String, items: [Item], builtAt: String? = nil) {
        self.kind = kind
        self.items = items
        self.builtAt = builtAt
    }
}

/// A control a person placed. Unlike widgets, controls have ids and push tokens of their own.
public struct PlacedControl: Sendable, Hashable {
    /// The control kind.
    public var kind: String
    /// `ControlInfo.id`.
    public var id: String
    /// The resolved intent parameters.
    public var parameters: [String: ParameterValue]
    /// How this control is told; `nil` when it shares the client's delivery.
    public var delivery: DeliveryAddress?

    /// A placed control.
    public init(
        kind: String, id: String, parameters: [String: ParameterValue] = [:],
        delivery: DeliveryAddress? = nil
    ) {
        self.kind = kind
        self.id = id
        self.parameters = parameters
        self.delivery = delivery
    }
}

/// One way to tell a client.
public enum DeliveryAddress: Sendable, Hashable {
    /// A held-open event stream, or polls.
    case stream
    /// Apple's push service.
    case apns(APNsAddress)
    /// A webhook; only a backend may register one.
    case webhook(url: String)

    /// Where and what APNs is asked to push.
    public struct APNsAddress: Sendable, Hashable {
        /// `widgets`, `controls` or `background`.
        public var pushType: String
        /// The push token, hexadecimal. A secret: it never reaches a log.
        public var token: String
        /// `production` or `sandbox`.
        public var environment: String
        /// The topic; configured per app when absent.
        public var topic: String?

        /// An address.
        public init(
            pushType: String, token: String, environment: String = "production",
            topic: String? = nil
        ) {
            self.pushType = pushType
            self.token = token
            self.environment = environment
            self.topic = topic
        }
    }
}
