import WidgetModel

/// Computes an opaque digest of a registration's content.
///
/// Equivalent registrations have the same digest: the order of members, widgets, sets, controls,
/// activities and attribute values makes no difference, nor do defaults. Content that changes
/// without a registration is excluded: the attributes that tokens vouch for, and the cursors at
/// which recommendation sets were built. It is not secret, so it is the same on every gateway; a
/// forged collision would only deceive the client itself.
package enum RegistrationDigest {
    /// Returns the digest of a registration whose attributes have these origins.
    package static func text(
        of registration: ClientRegistration, _ attributes: ClientAttributes
    ) -> String {
        text(of: registration.json(maskingTokens: false), attributes)
    }

    /// Returns the digest of a registration that is already encoded, with its tokens.
    package static func text(of document: JSONValue, _ attributes: ClientAttributes) -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(1_024)
        for member in document.objectValue?.members ?? [] where member.name != attributesMember {
            JSONValue.string(member.name).append(to: &bytes)
            let elements = member.value.arrayValue ?? []
            switch member.name {
            case "widgets", "controls", "activities", "activityStarts":
                appendHashes(of: elements, to: &bytes)
            case "recommendations":
                appendHashes(of: elements.map(withoutPosition), to: &bytes)
            default: member.value.append(to: &bytes)
            }
        }
        append(attributes.own.merging(attributes.backend) { $1 }, to: &bytes)
        // At most 13 characters, which a string stores without allocation.
        return String(hash(bytes), radix: 36)
    }

    /// The member that is replaced by the attributes which do not come from a token.
    private static let attributesMember = "attributes"
    private static let hash = SipHash(0, 0)

    private static func append(_ attributes: [String: [String]], to bytes: inout [UInt8]) {
        for (name, values) in attributes.sorted(by: { $0.key < $1.key }) {
            JSONValue.string(name).append(to: &bytes)
            bytes.append(UInt8(ascii: ":"))
            for value in Set(values).sorted() { JSONValue.string(value).append(to: &bytes) }
        }
    }

    /// Returns a recommendation set without the cursor at which it was built.
    private static func withoutPosition(_ set: JSONValue) -> JSONValue {
        var members = set.objectValue ?? JSONObject()
        members["builtAt"] = nil
        return .object(members)
    }

    /// Appends the sorted hashes of elements, as an array, so that the order of the elements does
    /// not matter.
    private static func appendHashes(of elements: [JSONValue], to bytes: inout [UInt8]) {
        var element: [UInt8] = []
        var hashes: [UInt64] = []
        hashes.reserveCapacity(elements.count)
        for value in elements {
            element.removeAll(keepingCapacity: true)
            value.append(to: &element)
            hashes.append(hash(element))
        }
        hashes.sort()
        bytes.append(UInt8(ascii: "["))
        for hash in hashes {
            withUnsafeBytes(of: hash.littleEndian) { bytes.append(contentsOf: $0) }
        }
        bytes.append(UInt8(ascii: "]"))
    }
}
