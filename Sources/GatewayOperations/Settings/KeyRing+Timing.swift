import GatewaySigning

/// The timing of the key rings that no option changes, for the gateway and for commands alike.
extension KeyRing.Timing {
    /// The timing of the local issuer's keys.
    package static var tokens: KeyRing.Timing {
        KeyRing.Timing(publishLead: 300, signatureLifetime: LocalIssuer.clientTokenSecondsMax)
    }

    /// The timing of the keys of webhooks.
    ///
    /// Receivers learn the keys when clients register. So both keys of a rotation sign in the week
    /// before the new key becomes the ring's signing key, and in the week after.
    package static var webhooks: KeyRing.Timing {
        KeyRing.Timing(publishLead: 7 * 86_400, signatureLifetime: 300)
    }
}
