/// The registration of one client (an app installation on a device): the configured widgets, the
/// recommendation sets, the controls, the Live Activities, and the delivery addresses.
public struct ClientRegistration: Sendable, Hashable {
    /// The platform by WidgetKit's name, such as `iOS` or `watchOS`; unknown names are allowed.
    public var platform: String
    /// The system's version; compared numerically.
    public var osVersion: OSVersion?
    /// The client's own attributes, such as its account.
    public var attributes: [String: [String]]
    /// The configured widgets. Identical ones are counted, because they cannot be distinguished.
    public var widgets: [ConfiguredWidget]
    /// The recommendation sets of the client's kinds.
    public var recommendations: [RecommendationSet]
    /// The placed controls.
    public var controls: [PlacedControl]
    /// The delivery addresses in order of preference.
    public var delivery: [DeliveryAddress]
    /// The Live Activities that have begun and not ended.
    public var activities: [RegisteredActivity]
    /// The addresses at which Live Activities can be started, at most one for each type.
    public var activityStarts: [ActivityStartAddress]

    /// Creates a registration.
    public init(
        platform: String, osVersion: OSVersion? = nil, attributes: [String: [String]] = [:],
        widgets: [ConfiguredWidget] = [], recommendations: [RecommendationSet] = [],
        controls: [PlacedControl] = [], delivery: [DeliveryAddress] = [.stream],
        activities: [RegisteredActivity] = [], activityStarts: [ActivityStartAddress] = []
    ) {
        self.platform = platform
        self.osVersion = osVersion
        self.attributes = attributes
        self.widgets = widgets
        self.recommendations = recommendations
        self.controls = controls
        self.delivery = delivery
        self.activities = activities
        self.activityStarts = activityStarts
    }
}

/// A system version such as 26.1. watchOS 11 is followed by 26, so versions are only compared,
/// never computed.
public struct OSVersion: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The parts, without trailing zeros.
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

    /// Compares part by part, numerically.
    public static func < (left: OSVersion, right: OSVersion) -> Bool {
        left.parts.lexicographicallyPrecedes(right.parts)
    }

    /// The version in its written form.
    public var description: String {
        parts.map(String.init).joined(separator: ".")
    }
}

/// A widget as a person configured it: kind, family and values. There is no instance id.
public struct ConfiguredWidget: Sendable, Hashable {
    /// The widget kind.
    public var kind: String
    /// The family; unknown names are allowed.
    public var family: String
    /// The resolved intent parameters.
    public var parameters: [String: ParameterValue]
    /// The number of times it is placed.
    public var count: Int

    /// Creates a configured widget.
    public init(
        kind: String, family: String, parameters: [String: ParameterValue] = [:], count: Int = 1
    ) {
        self.kind = kind
        self.family = family
        self.parameters = parameters
        self.count = count
    }
}

/// The recommendations of one kind, as `recommendations()` returned them. An empty set means that
/// people configure the widget themselves.
public struct RecommendationSet: Sendable, Hashable {
    /// The widget kind.
    public var kind: String
    /// The recommended configurations, in order.
    public var items: [Item]
    /// The cursor at which the set was built, as opaque text.
    public var builtAt: String?

    /// One recommended configuration (`AppIntentRecommendation`).
    public struct Item: Sendable, Hashable {
        /// The intent's parameters.
        public var parameters: [String: ParameterValue]
        /// The display name.
        public var description: String

        /// Creates a recommended configuration.
        public init(parameters: [String: ParameterValue], description: String) {
            self.parameters = parameters
            self.description = description
        }
    }

    /// Creates a recommendation set.
    public init(kind: String, items: [Item], builtAt: String? = nil) {
        self.kind = kind
        self.items = items
        self.builtAt = builtAt
    }
}

/// A control that a person placed. Unlike widgets, controls have their own ids and push tokens.
public struct PlacedControl: Sendable, Hashable {
    /// The control kind.
    public var kind: String
    /// The id, as in `ControlInfo.id`.
    public var id: String
    /// The resolved intent parameters.
    public var parameters: [String: ParameterValue]
    /// The delivery address of this control; `nil` when it uses the client's addresses.
    public var delivery: DeliveryAddress?

    /// Creates a placed control.
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

/// A Live Activity of a client. Like controls, activities have their own ids and push tokens.
public struct RegisteredActivity: Sendable, Hashable {
    /// The type, under which the catalog declares its rules.
    public var type: String
    /// The id, as in `Activity.id`.
    public var id: String
    /// The values that stay the same for the whole activity.
    public var attributes: [String: ParameterValue]
    /// The broadcast channel that the activity listens to; `nil` for none.
    public var channel: String?
    /// The delivery address of this activity; `nil` when no push reaches it alone.
    public var delivery: DeliveryAddress?

    /// Creates an activity.
    public init(
        type: String, id: String, attributes: [String: ParameterValue] = [:],
        channel: String? = nil, delivery: DeliveryAddress? = nil
    ) {
        self.type = type
        self.id = id
        self.attributes = attributes
        self.channel = channel
        self.delivery = delivery
    }
}

/// The address at which Live Activities of one type can be started (the push-to-start token).
public struct ActivityStartAddress: Sendable, Hashable {
    /// The type of the activities.
    public var type: String
    /// The delivery address.
    public var delivery: DeliveryAddress

    /// Creates an address.
    public init(type: String, delivery: DeliveryAddress) {
        self.type = type
        self.delivery = delivery
    }
}

/// A way to notify a client.
public enum DeliveryAddress: Sendable, Hashable {
    /// A held-open event stream, or polling.
    case stream
    /// Apple's push service.
    case apns(APNsAddress)
    /// A webhook. Only a backend may register one.
    case webhook(url: String)
    /// The push service that a browser subscribed to (Web Push, RFC 8030).
    case webPush(WebPushAddress)
    /// Firebase Cloud Messaging, by the registration token of an app's installation. The token is
    /// secret and must never be logged.
    case fcm(token: String)

    /// A browser's push subscription, with the members that `PushSubscription.toJSON()` gives it.
    public struct WebPushAddress: Sendable, Hashable {
        /// The URL to push to. It is secret: whoever knows it may push.
        public var endpoint: String
        /// The browser's public P-256 key, base64url.
        public var p256dh: String
        /// The secret that pushes are encrypted with, base64url.
        public var auth: String

        /// Creates an address.
        public init(endpoint: String, p256dh: String, auth: String) {
            self.endpoint = endpoint
            self.p256dh = p256dh
            self.auth = auth
        }
    }

    /// The token and options of a push through APNs.
    public struct APNsAddress: Sendable, Hashable {
        /// The push type: `widgets`, `controls`, `background` or `liveactivity`.
        public var pushType: String
        /// The push token, hexadecimal. It is secret and must never be logged.
        public var token: String
        /// The environment: `production` or `sandbox`.
        public var environment: String
        /// The topic; `nil` for the one configured for the app.
        public var topic: String?
        /// The id of a broadcast channel, base64; `nil` for a device. The token is then empty.
        public var channel: String?

        /// Creates an address.
        public init(
            pushType: String, token: String, environment: String = "production",
            topic: String? = nil, channel: String? = nil
        ) {
            self.pushType = pushType
            self.token = token
            self.environment = environment
            self.topic = topic
            self.channel = channel
        }
    }
}
