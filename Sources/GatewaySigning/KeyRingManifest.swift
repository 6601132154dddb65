import WidgetModel

/// The file `ring.json`: the keys of a ring and their states. The keys themselves are in separate
/// files.
struct KeyRingManifest {
    /// The name of a key with its state.
    struct Entry: Equatable {
        let kid: String
        let state: KeyRing.State
    }

    /// The limit of a manifest, bytes.
    static let bytesMax = 64 * 1024

    let signing: Entry
    /// The other keys in order.
    let others: [Entry]

    init(of ring: KeyRing) {
        signing = Entry(kid: ring.signing.key.kid, state: ring.signing.state)
        others = ring.others.map { Entry(kid: $0.key.kid, state: $0.state) }
    }

    /// Reads a manifest. Throws ``SigningError`` (`documentMalformed`) unless exactly one key signs
    /// and every name is a thumbprint, because names become file names.
    init(parsing text: [UInt8]) throws(SigningError) {
        guard let object = try? JSONValue(parsing: text).objectValue,
            let elements = object["keys"]?.arrayValue, elements.count <= KeyRing.keysMax
        else { throw Self.malformed("it is not an object with a short array called keys") }
        var signing: Entry?
        var others: [Entry] = []
        for element in elements {
            let entry = try Self.entry(element)
            guard signing?.kid != entry.kid, !others.contains(where: { $0.kid == entry.kid }) else {
                throw Self.malformed("a key is listed twice")
            }
            if case .signing = entry.state {
                guard signing == nil else { throw Self.malformed("two keys sign") }
                signing = entry
            } else {
                others.append(entry)
            }
        }
        guard let signing else { throw Self.malformed("no key signs") }
        self.signing = signing
        self.others = others
    }

    private static func entry(_ value: JSONValue) throws(SigningError) -> Entry {
        guard let object = value.objectValue, let kid = object["kid"]?.stringValue,
            let digest = Base64.url.decode(kid), digest.count == 32
        else { throw malformed("a kid is not a SHA-256 thumbprint") }
        guard let time = object["time"]?.integerValue else {
            throw malformed("a key has no integer called time")
        }
        switch object["state"]?.stringValue {
        case "published": return Entry(kid: kid, state: .published(from: time))
        case "signing": return Entry(kid: kid, state: .signing(since: time))
        case "retiring": return Entry(kid: kid, state: .retiring(until: time))
        default: throw malformed("a key is neither published, signing nor retiring")
        }
    }

    private static func malformed(_ reason: String) -> SigningError {
        SigningError(.documentMalformed, "the manifest of the key ring is not valid: \(reason)")
    }

    /// The manifest as indented JSON, for operators to read.
    var serialized: [UInt8] {
        let keys = ([signing] + others).map { entry in
            let (state, time): (JSONValue, Int64) =
                switch entry.state {
                case .published(let from): ("published", from)
                case .signing(let since): ("signing", since)
                case .retiring(let until): ("retiring", until)
                }
            return JSONValue.object([
                "kid": .string(entry.kid), "state": state, "time": .integer(time),
            ])
        }
        let object: JSONObject = ["keys": .array(keys)]
        return Array((JSONValue.object(object).indented() + "\n").utf8)
    }
}
