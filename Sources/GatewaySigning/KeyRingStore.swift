/// A directory that keeps a ``KeyRing``: `ring.json`, and one PKCS#8 PEM file per key called by its
/// `kid`. All files have mode 0600 and are replaced whole.
///
/// A key is on disk before the manifest names it, and removed after the manifest has forgotten it:
/// a crash in between leaves a file too many, never one too few. Several processes may read and
/// change a ring at a time: each does so while it alone has the directory (`flock(2)`), and begins
/// with what the others left.
package struct KeyRingStore: Sendable {
    /// The directory, made with mode 0700 by the first ``open(algorithm:timing:now:)``; the one
    /// above it must exist.
    package let directory: String

    /// A store in `directory`; nothing is touched yet.
    package init(directory: String) {
        self.directory = directory
    }

    /// Reads the ring, or begins one whose first key signs at once.
    ///
    /// - Parameter algorithm: of a key that has to be made; an existing ring keeps its own.
    /// - Throws: ``SigningError``: `fileFailed`, `documentMalformed`, `keyUnsupported` or
    ///   `limitExceeded`. A damaged ring is never replaced by a new one.
    package func open(
        algorithm: SigningAlgorithm = .edDSA, timing: KeyRing.Timing, now: Int64
    ) throws(SigningError) -> KeyRing {
        try PrivateFile.makeDirectory(directory)
        return try PrivateFile.withLock(on: directory) { () throws(SigningError) in
            try read(algorithm: algorithm, timing: timing, now: now)
        }
    }

    /// The ring there is, or a new one; while the directory is locked.
    private func read(
        algorithm: SigningAlgorithm, timing: KeyRing.Timing, now: Int64
    ) throws(SigningError) -> KeyRing {
        if !PrivateFile.exists(manifestPath) {
            let ring = KeyRing(
                first: try SigningKey(generating: algorithm), timing: timing, now: now)
            try ring.signingKey.save(to: path(ring.signingKey.kid))
            try PrivateFile.replace(manifestPath, with: KeyRingManifest(of: ring).serialized)
            return ring
        }
        let manifest = try KeyRingManifest(
            parsing: try PrivateFile.read(manifestPath, bytesMax: KeyRingManifest.bytesMax))
        var others: [KeyRing.Entry] = []
        for entry in manifest.others { others.append(try load(entry)) }
        return KeyRing(signing: try load(manifest.signing), others: others, timing: timing)
    }

    /// Publishes a new key in the ring that is on disk; it is there when `ring` changes.
    ///
    /// - Throws: ``SigningError``; `ring` and the directory's ring are then as they were.
    package func rotate(
        _ ring: inout KeyRing, to algorithm: SigningAlgorithm = .edDSA, now: Int64
    ) throws(SigningError) {
        let timing = ring.timing
        ring = try PrivateFile.withLock(on: directory) { () throws(SigningError) in
            var next = try read(algorithm: algorithm, timing: timing, now: now)
            let key = try SigningKey(generating: algorithm)
            try next.rotate(now: now, newKey: key)
            try key.save(to: path(key.kid))
            try PrivateFile.replace(manifestPath, with: KeyRingManifest(of: next).serialized)
            return next
        }
    }

    /// Lets every change happen that is due in the ring that is on disk, and removes the files of
    /// keys that retire.
    ///
    /// - Returns: whether anything changed.
    /// - Throws: ``SigningError``; `ring` is then as it was, and that on disk too, or changed with
    ///   files of retired keys left over.
    package func advance(_ ring: inout KeyRing, now: Int64) throws(SigningError) -> Bool {
        let before = ring
        let next = try PrivateFile.withLock(on: directory) { () throws(SigningError) in
            let found = try read(
                algorithm: before.signingKey.algorithm, timing: before.timing, now: now)
            var next = found
            let retired = next.advance(now: now)
            guard next != found else { return next }
            try PrivateFile.replace(manifestPath, with: KeyRingManifest(of: next).serialized)
            for key in retired { try PrivateFile.remove(path(key.kid)) }
            return next
        }
        ring = next
        return next != before
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
