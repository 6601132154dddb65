/// A directory that keeps a ``KeyRing``: `ring.json`, and one PKCS#8 PEM file per key called by its
/// `kid`. All files have mode 0600 and are replaced whole.
///
/// A key is on disk before the manifest names it, and removed after the manifest has forgotten it:
/// a crash in between leaves a file too many, never one too few.
package struct KeyRingStore: Sendable {
    /// The directory, made with mode 0700 by the first ``open(algorithm:timing:now:)``; the one
    /// above it must exist.
    package let directory: String

    /// A store in `directory`; nothing is touched yet.
    package init(directory: String) {
        self.directory = directory
    }

    /// Reads the ring, or begins one whose first key signs at once. Several processes may call this
    /// at a time: one begins the ring, all get it.
    ///
    /// - Parameter algorithm: of a key that has to be made; an existing ring keeps its own.
    /// - Throws: ``SigningError``: `fileFailed`, `documentMalformed`, `keyUnsupported` or
    ///   `limitExceeded`. A damaged ring is never replaced by a new one.
    package func open(
        algorithm: SigningAlgorithm = .edDSA, timing: KeyRing.Timing, now: Int64
    ) throws(SigningError) -> KeyRing {
        try PrivateFile.makeDirectory(directory)
        if !PrivateFile.exists(manifestPath) {
            let ring = KeyRing(
                first: try SigningKey(generating: algorithm), timing: timing, now: now)
            try ring.signingKey.save(to: path(ring.signingKey.kid))
            let manifest = KeyRingManifest(of: ring).serialized
            if try PrivateFile.create(manifestPath, with: manifest) { return ring }
            try PrivateFile.remove(path(ring.signingKey.kid))
        }
        let manifest = try KeyRingManifest(
            parsing: try PrivateFile.read(manifestPath, bytesMax: KeyRingManifest.bytesMax))
        var others: [KeyRing.Entry] = []
        for entry in manifest.others { others.append(try load(entry)) }
        return KeyRing(signing: try load(manifest.signing), others: others, timing: timing)
    }

    /// Publishes a new key; it is on disk when `ring` changes. One process only may change a ring.
    ///
    /// - Throws: ``SigningError``; `ring` and the directory's ring are then as they were.
    package func rotate(
        _ ring: inout KeyRing, to algorithm: SigningAlgorithm = .edDSA, now: Int64
    ) throws(SigningError) {
        var next = ring
        let key = try SigningKey(generating: algorithm)
        try next.rotate(now: now, newKey: key)
        try key.save(to: path(key.kid))
        try PrivateFile.replace(manifestPath, with: KeyRingManifest(of: next).serialized)
        ring = next
    }

    /// Lets every change happen that is due, and removes the files of keys that retire.
    ///
    /// - Returns: whether anything changed.
    /// - Throws: ``SigningError``; `ring` is then as it was, or changed on disk and in memory with
    ///   files of retired keys left over.
    package func advance(_ ring: inout KeyRing, now: Int64) throws(SigningError) -> Bool {
        var next = ring
        let retired = next.advance(now: now)
        guard next != ring else { return false }
        try PrivateFile.replace(manifestPath, with: KeyRingManifest(of: next).serialized)
        ring = next
        for key in retired { try PrivateFile.remove(path(key.kid)) }
        return true
    }

    private var manifestPath: String { "\(directory)/ring.json" }

    private func path(_ kid: String) -> String { "\(directory)/\(kid).pem" }

    private func load(_ entry: KeyRingManifest.Entry) throws(SigningError) -> KeyRing.Entry {
        let key = try SigningKey(contentsOf: path(entry.kid))
        guard key.kid == entry.kid else {
            throw SigningError(
                .documentMalformed, "the file \(entry.kid).pem holds another key than its name says"
            )
        }
        return KeyRing.Entry(key: key, state: entry.state)
    }
}
