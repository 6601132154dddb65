import WidgetModel

/// The answer to a registration.
package struct Registered: Codable, Sendable {
    package var client = ""
    /// The cursor at the registration, for a client that now builds every timeline.
    package var cursor = ""
    package var expires = ""
    package var digest = ""
    package var warnings: [Fault] = []
    /// The public keys of webhook signatures, if the client has a webhook.
    package var webhookKeys: [String]?
    /// The app's VAPID public key, if it gets Web Push: a browser's `applicationServerKey`.
    package var applicationServerKey: String?

    package init() {}
}

/// A page of registrations in order of client id.
package struct ClientPage: Codable, Sendable {
    package var clients: [RegisteredClient] = []
    /// The cursor of the next page.
    package var after: String?

    package init() {}
}

/// A registration as it is shown, with push tokens masked.
package struct RegisteredClient: Codable, Sendable {
    package var platform = ""
    package var osVersion: String?
    /// The effective attributes, if there are any.
    package var attributes: JSONValue?
    // As `ClientRegistration` writes them.
    package var widgets: [JSONValue] = []
    package var recommendations: [JSONValue] = []
    package var controls: [JSONValue] = []
    // Absent if there are none.
    package var activities: [JSONValue]?
    package var activityStarts: [JSONValue]?
    package var delivery: [RegisteredAddress] = []
    package var client = ""
    package var digest = ""
    /// The time of the last registration, stream, poll or acknowledgement.
    package var lastSeen: String?
    package var streams: Int?
    /// The number of stale items; absent if that is unknown since the gateway started.
    package var stale: Int?
    /// The number of widgets, sets, controls and activities that no change can make stale, because
    /// the client lacks attributes.
    package var dependOnNothing: Int?

    package init() {}

    /// Creates the document of a registration whose attributes are the effective ones.
    package init(_ registration: ClientRegistration, client: String, digest: String) throws {
        platform = registration.platform
        osVersion = registration.osVersion?.description
        if !registration.attributes.isEmpty {
            attributes = attributesJSON(registration.attributes)
        }
        widgets = registration.widgets.map(\.json)
        recommendations = registration.recommendations.map(\.json)
        controls = registration.controls.map { $0.json(maskingTokens: true) }
        if !registration.activities.isEmpty {
            activities = registration.activities.map { $0.json(maskingTokens: true) }
        }
        if !registration.activityStarts.isEmpty {
            activityStarts = registration.activityStarts.map { $0.json(maskingTokens: true) }
        }
        delivery = try registration.delivery.map {
            try RegisteredAddress(decoding: $0.json(maskingTokens: true))
        }
        self.client = client
        self.digest = digest
    }
}

/// An address of a client as it is shown.
package struct RegisteredAddress: Codable, Sendable {
    package let type: String
    package let pushType: String?
    package let token: String?
    package let environment: String?
    package let topic: String?
    package let url: String?
    package let endpoint: String?
}

/// The answer to the erasure of clients.
package struct ErasedClients: Codable, Sendable {
    package var erased: Int

    package init(erased: Int) { self.erased = erased }
}
