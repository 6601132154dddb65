/// A directory that stores a ``KeyRing``: `ring.json`, and one PKCS#8 PEM file per key named by its
/// `kid`. All files have mode 0600 and are replaced as a whole.
///
/// A key is on disk before the manifest lists it, and is removed after the manifest no longer does:
/// a crash in between leaves an extra file, but never a missing one. Several processes may read and
/// change a ring: each locks the directory (`flock(2)`) and starts from the stored state.
package struct KeyRingStore: Sendable {
    /// The directory, created with mode 0700 by the first ``open(algorithm:timing:now:)``; its
    /// parent must exist.
    package let directory: String

    /// Creates a store for `directory` without accessing it.
    package init(directory: String) {
        self.directory = directory
    }

    /// Reads the ring, or creates one: from the existing key files, or with a new key that signs at
    /// once.
    ///
    /// - Parameter algorithm: The algorithm of a new key; an existing ring keeps its own.
    /// - Throws: ``SigningError``: `fileFailed`, `documentMalformed`, `keyUnsupported` or
    ///   `limitExceeded`. A damaged ring is never replaced by a new one.
    package func open(
        algorithm: SigningAlgorithm = .edDSA, timing: KeyRing.Timing, now: Int64
    ) throws(SigningError) -> KeyRing {
        try PrivateFile.makeDirectory(directory)
        return try PrivateFile.withLock(on: directory) { () throws(SigningError) in
            guard !PrivateFile.exists(manifestPath) else { return try read(timing: timing) }
            let ring = try begin(algorithm: algorithm, timing: timing, now: now)
            try PrivateFile.replace(manifestPath, with: KeyRingManifest(of: ring).serialized)
            return ring
        }
    }

    /// Reads the existing ring, and creates nothing. Throws as ``open(algorithm:timing:now:)``;
    /// `fileFailed` if there is no ring.
    package func openExisting(timing: KeyRing.Timing) throws(SigningError) -> KeyRing {
        try PrivateFile.withLock(on: directory) { () throws(SigningError) in
            try read(timing: timing)
        }
    }

    /// Creates a ring while the directory is locked.
    ///
    /// Of key files without a manifest, the oldest signs, because every verifier knows it; the
    /// others stay published as long as something they signed may be valid.
    private func begin(
        algorithm: SigningAlgorithm, timing: KeyRing.Timing, now: Int64
    ) throws(SigningError) -> KeyRing {
        let names = try PrivateFile.namesByAge(in: directory, suffix: Self.keySuffix)
            .suffix(KeyRing.keysMax)
        let until = now.addingClamped(timing.signatureLifetime).addingClamped(timing.publishLead)
        var entries: [KeyRing.Entry] = []
        for name in names {
            let kid = String(name.dropLast(Self.keySuffix.count))
            let state: KeyRing.State =
                entries.isEmpty ? .signing(since: now) : .retiring(until: until)
            entries.append(try load(KeyRingManifest.Entry(kid: kid, state: state)))
        }
        if let signing = entries.first {
            return KeyRing(signing: signing, others: Array(entries.dropFirst()), timing: timing)
        }
        let ring = KeyRing(first: try SigningKey(generating: algorithm), timing: timing, now: now)
        try ring.signingKey.save(to: path(ring.signingKey.kid))
        return ring
    }

    /// Reads the ring while the directory is locked.
    private func read(timing: KeyRing.Timing) throws(SigningError) -> KeyRing {
        let manifest = try KeyRingManifest(
            parsing: try PrivateFile.read(manifestPath, bytesMax: KeyRingManifest.bytesMax))
        var others: [KeyRing.Entry] = []
        for entry in manifest.others { others.append(try load(entry)) }
        return KeyRing(signing: try load(manifest.signing), others: others, timing: timing)
    }

    /// The rule for whether a rotation creates a key, applied to the stored ring under its lock.
    package enum RotationRule: Sendable {
        /// Once at a time: of several rotations to one algorithm within
        /// ``KeyRing/sameMomentSeconds`` the first creates a key, which serves for all.
        case onceAtAMoment
        /// One after another: rejected with this message while the ring has more than one key.
        case oneAfterAnother(refusal: String)
    }

    /// Adds a new key to the stored ring, if `rule` allows, and then to `ring`. Throws
    /// ``SigningError``; both rings are then unchanged.
    package func rotate(
        _ ring: inout KeyRing, to algorithm: SigningAlgorithm = .edDSA, now: Int64,
        rule: RotationRule = .onceAtAMoment
    ) throws(SigningError) {
        let timing = ring.timing
        ring = try PrivateFile.withLock(on: directory) { () throws(SigningError) in
            var next = try read(timing: timing)
            switch rule {
            case .onceAtAMoment:
                if next.isRotated(to: algorithm, now: now) { return next }
            case .oneAfterAnother(let refusal):
                guard next.others.isEmpty else { throw SigningError(.limitExceeded, refusal) }
            }
            let key = try SigningKey(generating: algorithm)
            try next.rotate(now: now, newKey: key)
            try key.save(to: path(key.kid))
            try PrivateFile.replace(manifestPath, with: KeyRingManifest(of: next).serialized)
            return next
        }
    }

    /// Applies every due change to the stored ring and to `ring`, and removes the files of retired
    /// keys. Returns whether anything changed.
    ///
    /// - Throws: ``SigningError``; `ring` is then unchanged, and so is the stored ring unless only
    ///   the removal of files failed.
    package func advance(_ ring: inout KeyRing, now: Int64) throws(SigningError) -> Bool {
        let before = ring
        let next = try PrivateFile.withLock(on: directory) { () throws(SigningError) in
            let found = try read(timing: before.timing)
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

    /// Returns the names and contents of the ring's files; none without a ring. Throws
    /// ``SigningError``.
    package func files() throws(SigningError) -> [String: [UInt8]] {
        guard PrivateFile.exists(manifestPath) else { return [:] }
        return try PrivateFile.withLock(on: directory) { () throws(SigningError) in
            let manifest = try PrivateFile.read(manifestPath, bytesMax: KeyRingManifest.bytesMax)
            var files = [Self.manifestName: manifest]
            let ring = try KeyRingManifest(parsing: manifest)
            for kid in ([ring.signing] + ring.others).map(\.kid) {
                files[kid + Self.keySuffix] = try PrivateFile.read(
                    path(kid), bytesMax: EVPKey.pemBytesMax)
            }
            return files
        }
    }

    /// Replaces the ring by the one in `files`; returns whether it was another one. The parent of
    /// the directory must exist. Throws ``SigningError``, before any change if `files` are not a
    /// ring.
    package func replace(
        with files: [String: [UInt8]], timing: KeyRing.Timing
    ) throws(SigningError) -> Bool {
        guard try self.files() != files, let manifest = files[Self.manifestName] else {
            return false
        }
        let ring = try KeyRingManifest(parsing: manifest)
        try PrivateFile.makeDirectory(directory)
        try PrivateFile.withLock(on: directory) { () throws(SigningError) in
            for entry in [ring.signing] + ring.others {
                guard let pem = files[entry.kid + Self.keySuffix] else {
                    throw SigningError(.documentMalformed, "the ring lacks the key \(entry.kid)")
                }
                try PrivateFile.replace(path(entry.kid), with: pem)
                _ = try load(entry)
            }
            try PrivateFile.replace(manifestPath, with: manifest)
            for name in try PrivateFile.namesByAge(in: directory, suffix: Self.keySuffix)
            where files[name] == nil {
                try PrivateFile.remove("\(directory)/\(name)")
            }
        }
        return true
    }

    private static let manifestName = "ring.json"
    private var manifestPath: String { "\(directory)/\(Self.manifestName)" }

    private static let keySuffix = ".pem"

    private func path(_ kid: String) -> String { "\(directory)/\(kid)\(Self.keySuffix)" }

    private func load(_ entry: KeyRingManifest.Entry) throws(SigningError) -> KeyRing.Entry {
        let key = try SigningKey(contentsOf: path(entry.kid))
        guard key.kid == entry.kid else {
            throw SigningError(
                .documentMalformed, "the key in the file \(entry.kid).pem does not match its name"
            )
        }
        return KeyRing.Entry(key: key, state: entry.state)
    }
}
