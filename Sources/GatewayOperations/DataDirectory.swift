import Foundation
import GatewayCore
import GatewaySigning
import GatewayStorage
import WidgetModel

/// The information in a data directory besides its store, for commands that work on it from
/// outside: the gateway's public URLs, and the overlap of its signing keys.
package struct DataDirectory: Sendable {
    package let path: String

    /// Refers to a directory without accessing it.
    package init(_ path: String) {
        self.path = path
    }

    private var identityPath: String { path + "/gateway.json" }

    /// Creates the directory with mode 0700 if it is missing. Throws ``Faults``.
    package func create() throws(Faults) {
        try requireNoRestore()
        do {
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
        } catch {
            throw Faults(
                "data", "cannot create the directory \(path): \(error.localizedDescription)")
        }
    }

    private var identity: JSONObject {
        guard let data = FileManager.default.contents(atPath: identityPath),
            let object = try? JSONValue(parsing: Array(data)).objectValue
        else { return [:] }
        return object
    }

    /// The public URLs so far, the directory's own first.
    package func urls() -> [String] {
        (identity["urls"]?.arrayValue ?? []).compactMap(\.stringValue)
    }

    /// The overlap of its signing keys, as the gateway was last configured.
    package var keyTiming: KeyRing.Timing {
        let signing = identity["signing"]?.objectValue
        return KeyRing.Timing(
            publishLead: signing?["publishLead"]?.integerValue ?? 300,
            signatureLifetime: signing?["lifetime"]?.integerValue ?? 3600)
    }

    /// Records a public URL and the overlap of the keys; returns all URLs.
    ///
    /// The first URL is the directory's own, the audience of minted tokens: the configured one, or
    /// else the first that was recorded, which a change of the port does not change.
    ///
    /// - Parameter isConfigured: Whether the URL is configured, not made from host and port.
    package func note(
        url: String, isConfigured: Bool, timing: KeyRing.Timing
    ) throws(Faults) -> [String] {
        var urls = urls()
        // A directory that is started on ever different ports keeps the first and the latest URLs.
        let keptMax = 16
        if isConfigured {
            urls = [url] + urls.filter { $0 != url }.prefix(keptMax - 1)
        } else if !urls.contains(url) {
            if urls.count >= keptMax { urls.remove(at: 1) }
            urls.append(url)
        }
        let document: JSONValue = [
            "urls": .array(urls.map { .string($0) }),
            "signing": [
                "publishLead": .integer(timing.publishLead),
                "lifetime": .integer(timing.signatureLifetime),
            ],
        ]
        let content = Data(document.serialized)
        // With a full disk, a start that changes nothing here continues.
        guard FileManager.default.contents(atPath: identityPath) != content else { return urls }
        do {
            try content.write(to: URL(fileURLWithPath: identityPath), options: .atomic)
        } catch {
            throw Faults(
                "data",
                "cannot write the file \(identityPath): \(error.localizedDescription)")
        }
        return urls
    }

    /// Returns the local issuer, which mints tokens with the key that signs at `now`, in seconds
    /// since 1970. Throws ``Faults`` if no gateway was ever served from the directory, or
    /// ``SigningError``.
    package func tokenIssuer(now: Int64) throws -> TokenIssuer {
        guard let audience = urls().first else {
            throw Faults(
                "data", "\(path) is unused; start `timeline-gateway serve` first")
        }
        let isThere = inventory.rings[.tokens]?.hasManifest == true
        // Tokens may be minted before the gateway is configured to trust them.
        let isKnown =
            try SQLiteStore(readingOnly: path).notedRings()?
            .contains(KeyRingName.tokens.rawValue) == true
        guard isThere || !isKnown else {
            throw Faults(
                "data",
                "\(path)/issuer/ring.json is missing: restore it from a backup, or start once with "
                    + "`timeline-gateway serve --new` to create a new key")
        }
        let ring = try KeyRingStore(directory: path + "/issuer").open(
            timing: .tokens, now: now)
        return TokenIssuer(key: ring.signingKey, iss: LocalIssuer.name, aud: audience)
    }

    // MARK: Commands

    var now: Int64 { Int64(Date().timeIntervalSince1970) }

    /// Checks that the directory exists. `option` names the option with its path.
    package func requireServed(option: String = "data") throws(Faults) {
        guard FileManager.default.fileExists(atPath: path) else {
            throw Faults(option, "the directory \(path) does not exist")
        }
    }

    /// Opens a new epoch, which voids all older ones; returns its number. Throws
    /// `StoreError.alreadyInUse` while a gateway runs on the directory.
    package func openNewEpoch() async throws -> Int64 {
        try requireServed()
        let store = try SQLiteStore(directory: path, opening: .existing)
        let nonce = try secureRandom(count: 8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        // Beyond the epochs of starts that the restore undid.
        let beyond = EpochLedger.ordinalBeyondLoss(after: 0, now: now)
        let ordinal = try store.openEpoch(
            id: nonce, atLeast: Int64(beyond), now: now * 1000, voidOlder: true
        ).ordinal
        try store.renewMark()
        try await store.close()
        return ordinal
    }
}
