/// The types of push that are sent to Apple's push service for widgets.
package enum APNsPushType: String, Sendable, Hashable, CaseIterable {
    /// The timelines of every kind.
    case widgets
    case controls
    /// A recommendation set, by waking the app.
    case background
    /// A single Live Activity.
    case liveactivity
}

/// The way in which a notification reaches a client.
package enum NotificationChannel: String, Sendable, Hashable, CaseIterable {
    /// A held-open stream.
    case stream
    case poll
    /// APNs, timelines.
    case widgets
    /// APNs, controls.
    case controls
    /// APNs, waking the app.
    case background
    /// APNs, a Live Activity.
    case liveactivity
    case webhook
    /// The push service of a browser.
    case webpush
    /// Firebase Cloud Messaging.
    case fcm

    /// The channels that the gateway pushes by.
    package static let pushes: [NotificationChannel] = [
        .widgets, .controls, .background, .liveactivity, .webhook, .webpush, .fcm,
    ]
}

extension DeliveryAddress.APNsAddress {
    package var type: APNsPushType { APNsPushType(rawValue: pushType) ?? .widgets }
}

extension DeliveryAddress {
    package var channel: NotificationChannel {
        switch self {
        case .stream: .stream
        case .webhook: .webhook
        case .webPush: .webpush
        case .fcm: .fcm
        case .apns(let address):
            switch address.type {
            case .widgets: .widgets
            case .controls: .controls
            case .background: .background
            case .liveactivity: .liveactivity
            }
        }
    }
}
