import WidgetModel

/// A set of public keys by name: a JWK Set (RFC 7517 section 5).
package struct JWKSet: Sendable, Equatable {
    /// The limit of a set that is read, bytes.
    package static let bytesMax = 256 * 1024
    /// The maximum number of keys in a set.
    package static let keysMax = 100
    /// The media type of the serialized set (RFC 7517 section 8.5.2).
    package static let mediaType = "application/jwk-set+json"

    /// The keys in the order of the set, which implies no preference.
    package let keys: [VerificationKey]
    /// The reasons why keys of the parsed set were ignored, one line each: "key 2: use is not sig".
    package let skipped: [String]
    /// The names of the ignored keys.
    private let unusableKids: Set<ExactText>
    private let indexByKid: [ExactText: Int]

    /// Creates a set; if several keys have the same `kid`, the first is kept.
    package init(_ keys: [VerificationKey] = []) {
        self.init(keys, skipped: [], unusableKids: [])
    }

    private init(
        _ keys: [VerificationKey], skipped: [String], unusableKids: Set<ExactText>
    ) {
        var kept: [VerificationKey] = []
        var indexByKid: [ExactText: Int] = [:]
        var skipped = skipped
        for key in keys {
            let kid = ExactText(key.kid)
            if indexByKid[kid] == nil {
                indexByKid[kid] = kept.count
                kept.append(key)
            } else {
                skipped.append(Self.repetition)
            }
        }
        self.keys = kept
        self.skipped = skipped
        self.unusableKids = unusableKids
        self.indexByKid = indexByKid
    }

    private static let repetition = "a key repeats the kid of an earlier one"

    /// Whether several keys had the same `kid`, of which only the first is used.
    package var repeatsKids: Bool { skipped.contains(Self.repetition) }

    /// Parses a set, or a single key, which counts as a set of one. Ignores unknown members; keys of
    /// other types, or with missing or malformed members, are ignored and listed in ``skipped`` (RFC
    /// 7517 section 5).
    ///
    /// - Throws: ``SigningError``: `limitExceeded` above ``bytesMax`` or ``keysMax``,
    ///   `documentMalformed` when it is not a JSON object with an array called `keys`, nor a key.
    package init(parsing text: [UInt8]) throws(SigningError) {
        guard text.count <= Self.bytesMax else {
            throw SigningError(.limitExceeded, "the key set is longer than \(Self.bytesMax) bytes")
        }
        let value: JSONValue
        do throws(JSONFault) {
            value = try JSONValue(parsing: text)
        } catch {
            throw SigningError(.documentMalformed, "the key set is not JSON: \(error)")
        }
        try self.init(value)
    }

    /// Reads a set that is already parsed. See ``init(parsing:)``.
    package init(_ value: JSONValue) throws(SigningError) {
        let isKey = value.objectValue?["kty"] != nil
        guard let elements = isKey ? [value] : value.objectValue?["keys"]?.arrayValue else {
            throw SigningError(.documentMalformed, "the key set has no array called keys")
        }
        guard elements.count <= Self.keysMax else {
            throw SigningError(
                .limitExceeded, "the key set has \(elements.count) keys; \(Self.keysMax) are read")
        }
        var keys: [VerificationKey] = []
        var skipped: [String] = []
        var unusableKids: Set<ExactText> = []
        for (index, element) in elements.enumerated() {
            guard let jwk = element.objectValue else {
                skipped.append("key \(index + 1): it is \(element.shape)")
                continue
            }
            do throws(SigningError) {
                keys.append(try VerificationKey(jwk: jwk))
            } catch {
                skipped.append("key \(index + 1): \(error.message)")
                if let kid = jwk["kid"]?.stringValue { unusableKids.insert(ExactText(kid)) }
            }
        }
        self.init(keys, skipped: skipped, unusableKids: unusableKids)
    }

    /// Returns the key called `kid`, compared byte by byte (case matters).
    package subscript(_ kid: String) -> VerificationKey? {
        indexByKid[ExactText(kid)].map { keys[$0] }
    }

    /// Returns whether the parsed set has a key called `kid` that was ignored.
    func hasUnusableKey(named kid: String) -> Bool {
        unusableKids.contains(ExactText(kid))
    }

    /// The set as JSON: `{"keys": […]}`, with public members only.
    package var json: JSONValue {
        .object(["keys": .array(keys.map { .object($0.jwk) })])
    }

    /// The serialized set, of type ``mediaType``.
    package var serialized: [UInt8] {
        json.serialized
    }
}
