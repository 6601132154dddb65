import GatewayCore
import GatewayOperations
import GatewaySigning
import WidgetModel

/// The party that registers a client, which decides what it may state.
package enum Registrar: Sendable {
    /// The client itself, with the attributes its token vouches for.
    case client(vouched: [String: [String]])
    case backend

    /// Rejects new webhooks and broadcast channels of a client. Only a backend may request them,
    /// because the gateway calls webhooks, and everybody listens to channels.
    ///
    /// Receivers are not asked first, as by CloudEvents' handshake. A backend could send them
    /// requests itself, and can aim none into the gateway's network (``AddressGuard``); a receiver
    /// that does not want them answers 410 once.
    func checkWebhooks(
        of registration: ClientRegistration, replacing previous: ClientRegistration?
    ) throws(EngineError) {
        guard case .client = self else { return }
        // A control's address is requested like the client's own.
        let known = previous?.pushAddresses ?? []
        let hasNew = registration.pushAddresses.contains {
            ($0.isWebhook || $0.apns?.channel != nil) && !known.contains($0)
        }
        if hasNew { throw .webhookNeedsBackend }
    }
}

extension ClientRegistration {
    /// Returns the faults of new webhooks and browsers' push services that can never be called.
    /// Those of the previous registration are not checked: a backend or another configuration is
    /// responsible for them, and the client must not fail.
    ///
    /// - Parameters:
    ///   - webhooks: Decides about webhooks.
    ///   - services: Decides about browsers' push services.
    func urlFaults(
        replacing previous: ClientRegistration?, webhooks: AddressGuard, services: AddressGuard
    ) -> Faults {
        let known = previous?.pushAddresses ?? []
        var faults = Faults()
        func check(_ address: DeliveryAddress?, at place: String) {
            guard let address, !known.contains(address) else { return }
            switch address {
            case .stream, .apns, .fcm: break
            case .webhook(let url):
                if let objection = WebhookObjection(to: url, by: webhooks) {
                    faults.add("\(place).url", objection.message())
                }
            case .webPush(let push):
                if let objection = WebhookObjection(to: push.endpoint, by: services) {
                    faults.add(
                        "\(place).endpoint", objection.message(allowedBy: "push.serviceRanges"))
                }
                if !WebPushMessage.isPublicKey(Base64.url.decode(push.p256dh) ?? []) {
                    faults.add("\(place).keys.p256dh", "is no point of P-256")
                }
            }
        }
        for (index, address) in delivery.enumerated() { check(address, at: "delivery[\(index)]") }
        for (index, control) in controls.enumerated() {
            check(control.delivery, at: "controls[\(index)].delivery")
        }
        return faults
    }
}

/// The document that a registration is made from.
package enum RegistrationInput: Sendable {
    case document(JSONValue)
    /// A merge patch (RFC 7396).
    case patch(JSONValue)

    /// The texts of the cursors that the document states.
    var cursors: [String] {
        let document =
            switch self {
            case .document(let document), .patch(let document): document
            }
        return (document.objectValue?["recommendations"]?.arrayValue ?? []).compactMap {
            $0.objectValue?["builtAt"]?.stringValue
        }
    }

    /// Whether the document states addresses for notifications. A patch of activities states only
    /// tokens, and does not say that a webhook works again.
    var namesAddresses: Bool {
        switch self {
        case .document: true
        case .patch(let patch):
            ["delivery", "controls"].contains { patch.objectValue?[$0] != nil }
        }
    }

    /// Whether the document states attributes.
    var namesAttributes: Bool {
        switch self {
        case .document: true
        case .patch(let patch): patch.objectValue?["attributes"] != nil
        }
    }

    /// The attributes that a patch states; `nil` where all are replaced.
    var attributesPatched: Set<String>? {
        switch self {
        case .document: nil
        case .patch(let patch):
            patch.objectValue?["attributes"]?.objectValue.map { Set($0.members.map(\.name)) }
        }
    }

    /// Returns the whole document; for a patch, what it makes of the registration in force.
    func document(
        by registrar: Registrar, replacing previous: StoredRegistration?
    ) throws(EngineError) -> JSONValue {
        switch self {
        case .document(let document): return document
        case .patch(let patch):
            guard let previous else { throw .unknownClient }
            var base = previous.registration
            // Only the attributes that the registrar answers for: it does not take over what others
            // vouched for.
            base.attributes =
                switch registrar {
                case .client: previous.attributes.own
                case .backend: previous.attributes.backend
                }
            return base.json(maskingTokens: false).merging(patch: patch)
        }
    }

    /// Returns the attributes that a registration puts in force.
    ///
    /// - Parameters:
    ///   - stated: The attributes of the whole document.
    ///   - previous: The attributes in force before.
    ///   - selfDeclared: The names that a client may state without a token.
    func attributes(
        stated: [String: [String]], by registrar: Registrar, replacing previous: ClientAttributes,
        selfDeclared: Set<String>
    ) throws(EngineError) -> ClientAttributes {
        switch registrar {
        case .backend:
            guard namesAttributes else { return previous }
            return ClientAttributes(
                statedByBackend: stated, naming: attributesPatched, before: previous)
        case .client(let vouched):
            do throws(ClientAttributes.Rejection) {
                return try ClientAttributes(
                    statedByClient: stated, token: vouched, before: previous,
                    selfDeclared: selfDeclared)
            } catch {
                throw .attributes(error)
            }
        }
    }
}
