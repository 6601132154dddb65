import WidgetModel

/// Public keys by name: a JWK Set (RFC 7517 section 5).
package struct JWKSet: Sendable, Equatable {
    /// Longest set that is read, bytes.
    package static let bytesMax = 256 * 1024
    /// Most keys of one set.
    package static let keysMax = 100
    /// The media type of the serialised set (RFC 7517 section 8.5.2).
    package static let mediaType = "application/jwk-set+json"

    /// The keys in the order of the set, which says nothing about preference.
    package let keys: [VerificationKey]
    /// Why keys of the parsed set were left out, one line each: "key 2: use is not sig".
    package let skipped: [String]
    private let indexByKid: [String: Int]

    /// A set of these keys; of several with one `kid` the first stays.
    package init(_ keys: [VerificationKey] = []) {
        self.init(keys, skipped: [])
    }

    private init(_ keys: [VerificationKey], skipped: [String]) {
        var kept: [VerificationKey] = []
        var indexByKid: [String: Int] = [:]
        var skipped = skipped
        for key in keys {
            if indexByKid[key.kid] == nil {
                indexByKid[key.kid] = kept.count
                kept.append(key)
            } else {
                skipped.append("a key repeats the kid of an earlier one")
            }
        }
        self.keys = kept
        self.skipped = skipped
        self.indexByKid = indexByKid
    }

    /// Parses a set. Members it does not know are ignored; keys of other kinds, or with members
    /// missing or malformed, are left out and told in ``skipped`` (RFC 7517 section 5).
    ///
    /// - Throws: ``SigningError``: `limitExceeded` above ``bytesMax`` or ``keysMax``,
    ///   `documentMalformed` when it is not a JSON object with an array called `keys`.
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

    /// Reads a set that is parsed already. See ``init(parsing:)``.
    package init(_ value: JSONValue) throws(SigningError) {
        guard let elements = value.objectValue?["keys"]?.arrayValue else {
            throw SigningError(.documentMalformed, "the key set has no array called keys")
        }
        guard elements.count <= Self.keysMax else {
            throw SigningError(
                .limitExceeded, "the key set has \(elements.count) keys; \(Self.keysMax) are read")
        }
        var keys: [VerificationKey] = []
        var skipped: [String] = []
        for (index, element) in elements.enumerated() {
            guard let jwk = element.objectValue else {
                skipped.append("key \(index + 1): it is \(element.shape)")
                continue
            }
            do throws(SigningError) {
                keys.append(try VerificationKey(jwk: jwk))
            } catch {
                skipped.append("key \(index + 1): \(error.message)")
            }
        }
        self.init(keys, skipped: skipped)
    }

    /// The key called `kid`, compared byte by byte (case matters).
    package subscript(_ kid: String) -> VerificationKey? {
        indexByKid[kid].map { keys[$0] }
    }

    /// The set as JSON: `{"keys": […]}`, public members only.
    package var json: JSONValue {
        .object(["keys": .array(keys.map { .object($0.jwk) })])
    }

    /// The set as ``mediaType``.
    package var serialized: [UInt8] {
        json.serialized
    }
}
