import WidgetModel

/// Makes the opaque text that stands for the content of a registration.
///
/// Two registrations have the same digest when they ask for the same: the order of members, widgets,
/// sets, controls and attribute values makes no difference, nor do defaults. Left out is what moves
/// without anybody registering: what tokens vouch for, and where recommendation sets were built.
/// It is no secret, so the same on every gateway, and one that collides only deceives its client.
package enum RegistrationDigest {
    /// Returns the digest of a registration whose attributes have these origins.
    package static func text(
        of registration: ClientRegistration, _ attributes: ClientAttributes
    ) -> String {
        var content = registration
        content.attributes = attributes.own.merging(attributes.backend) { $1 }
            .mapValues { Set($0).sorted() }
        for index in content.recommendations.indices {
            content.recommendations[index].builtAt = nil
        }
        var document = content.json(maskingTokens: false).objectValue ?? JSONObject()
        for member in ["widgets", "recommendations", "controls"] {
            let elements = document[member]?.arrayValue ?? []
            document[member] = .array(
                elements.map(\.serialized).sorted { $0.lexicographicallyPrecedes($1) }
                    .map { .string(String(decoding: $0, as: UTF8.self)) })
        }
        // At most 13 characters, which a string holds without memory of its own.
        return String(SipHash(0, 0)(JSONValue.object(document).serialized), radix: 36)
    }
}
