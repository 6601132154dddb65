import Foundation
import GatewayCore
import GatewayPush
import WidgetModel

/// One push, as an ``APNsPool`` sends it.
package struct APNsPush: Sendable {
    /// The device token in hexadecimal, lower case.
    package let token: String
    /// What its type has in common.
    package let form: APNsPushForm
    /// `apns-id`; `nil` for a new one. A push that is sent again keeps it, so that APNs can be asked
    /// about it.
    package let id: String?
    /// When the address was last registered, in milliseconds since 1970.
    package var registeredAt: Int64
    /// How many times it failed before.
    package var failures = 0
    /// Whether the token may still be tried in APNs' other environment.
    package var mayTryOtherEnvironment = false

    /// Longest device token, in hexadecimal digits. Apple says that no length may be assumed.
    package static let tokenDigitsMax = 1_024

    /// A push; `nil` when the token is not hexadecimal, or the id no UUID.
    ///
    /// - Parameter id: `apns-id`; a new one when `nil`.
    package init?(token: String, form: APNsPushForm, registeredAt: Int64, id: String? = nil) {
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
        if let id {
            guard let uuid = UUID(uuidString: id) else { return nil }
            self.id = uuid.uuidString.lowercased()
        } else {
            self.id = nil
        }
        self.token = isLower ? token : token.lowercased()
        self.form = form
        self.registeredAt = registeredAt
    }
}

extension APNsPush: CustomStringConvertible, CustomReflectable {
    /// Without the token, whatever prints it.
    package var description: String { "APNsPush(\(form.type) \(id ?? "new"))" }
    /// Nothing: a dump must not show the token.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// What came of a push.
package struct APNsPushResult: Sendable, Hashable {
    /// What to do about it.
    package let reaction: APNsReaction
    /// What APNs said; `nil` when the push was not sent, because something is stopped or there
    /// will be no connection for a while.
    package let outcome: APNsOutcome?
    /// `apns-id`.
    package let id: String
    /// `apns-unique-id`, by which Apple's console finds a push of the sandbox.
    package let uniqueID: String?
    /// From sending the last request to its end, in milliseconds.
    package let milliseconds: Int64
    /// How many requests were made of it.
    package let requests: Int
}
