import GatewayCore
import WidgetModel

/// One push for an ``APNsPool`` to send.
package struct APNsPush: Sendable {
    /// The device token in lower-case hexadecimal; empty for a push to a channel.
    package let token: String
    /// The broadcast channel, and the bundle id of its app; `nil` for a push to a device.
    package let channel: (id: String, bundle: String)?
    /// The properties that it shares with other pushes of its type.
    package let form: APNsPushForm
    /// The content of a push for a Live Activity; other types share that of their form.
    package var payload: [UInt8]?
    /// The time of the address's last registration, in milliseconds since 1970.
    package var registeredAt: Int64
    /// The number of times the push has failed before.
    package var failures = 0
    /// Whether the token may still be tried in APNs' other environment.
    package var mayTryOtherEnvironment = false

    /// The length of the longest device token, in hexadecimal digits. Apple says that no length may
    /// be assumed.
    package static let tokenDigitsMax = 1_024

    /// A push; `nil` when the token is not hexadecimal.
    package init?(token: String, form: APNsPushForm, registeredAt: Int64) {
        var (isHexadecimal, isLower) = (true, true)
        for byte in token.utf8 {
            switch byte {
            case 0x30...0x39, 0x61...0x66: break
            case 0x41...0x46: isLower = false
            default: isHexadecimal = false
            }
        }
        let count = token.utf8.count
        guard isHexadecimal, count.isMultiple(of: 2), (2...Self.tokenDigitsMax).contains(count)
        else { return nil }
        self.token = isLower ? token : token.lowercased()
        channel = nil
        self.form = form
        self.registeredAt = registeredAt
    }

    /// A push to a broadcast channel; `nil` when the id of the channel or app is malformed.
    package init?(channel: String, bundle: String, form: APNsPushForm, registeredAt: Int64) {
        guard (1...DeliveryAddress.channelBytesMax).contains(channel.utf8.count),
            Base64.standard.decode(channel) != nil, APNsPushForm.isApp(bundle)
        else { return nil }
        token = ""
        self.channel = (channel, bundle)
        self.form = form
        self.registeredAt = registeredAt
    }
}

extension APNsPush: CustomStringConvertible, CustomReflectable {
    /// A description without the token, so that printing never shows it.
    package var description: String { "APNsPush(\(form.type))" }
    /// An empty mirror: a dump must not show the token.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

package struct APNsPushResult: Sendable, Hashable {
    /// The consequences of the result.
    package let reaction: APNsReaction
    /// The outcome of the last request; `nil` when the push was not sent, because sending is
    /// stopped or no connection will be available for a while.
    package let outcome: APNsOutcome?
    /// `apns-id`.
    package let id: String
    /// `apns-unique-id`, for finding a push of the sandbox in Apple's console.
    package let uniqueID: String?
    /// The time from sending the last request to its end, in milliseconds.
    package let milliseconds: Int64
    /// The number of requests made for the push.
    package let requests: Int
}
