import Foundation
import GatewayCore
import GatewayOperations
import WidgetModel

package struct RegistrationUpdate: Sendable {
    package let key: ClientKey
    /// The registration, read, checked and encoded.
    package let replacement: RegistrationReplacement
    /// The registration and the rules that it was made from.
    package let base: RegistrationBase
    /// Whether only the client's confirmations changed.
    package let confirms: Bool
    /// Whether the client counts as seen.
    package let isSeen: Bool

    /// The result of storing a registration.
    package enum Outcome: Sendable {
        /// The registration is in force from `position` on.
        case stored(isNew: Bool, position: UInt64)
        /// Nothing was written, because the registration or the rules that it was made from are not
        /// in force. The registration in force, as it is stored.
        case outdated(Data?)
    }
}

/// The registration and the rules that a replacement is based on.
package struct RegistrationBase: Sendable {
    /// The registration as it is stored; `nil` for a client that is not registered.
    package let payload: Data?
    /// The registration, decoded.
    let stored: StoredRegistration?
    /// The rules of the app; `nil` for an app without a catalog.
    package let ruleSet: RuleSet?

    init(payload: Data?, ruleSet: RuleSet?) throws {
        self.payload = payload
        stored = try payload.map { try StoredRegistration($0, limits: .none) }
        self.ruleSet = ruleSet
    }
}

/// A registration that has been read, checked and encoded and only needs to be stored.
package struct RegistrationReplacement: Sendable {
    /// The registration as the shards see it.
    package let record: ClientRecord
    /// The registration as it is stored.
    package let payload: Data
    /// Warnings about parts of the document that have no effect.
    let warnings: Faults

    /// - Parameter document: The registration as JSON, if it has been encoded already.
    init(
        _ stored: StoredRegistration, _ record: ClientRecord, document: JSONValue? = nil,
        warnings: Faults = Faults()
    ) {
        self.record = record
        self.warnings = warnings
        payload = document.map { stored.payload(of: $0) } ?? stored.payload
    }
}
