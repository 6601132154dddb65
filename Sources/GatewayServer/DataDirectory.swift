import Foundation
import GatewaySigning
import WidgetModel

/// What a data directory says of itself beside its store, for the commands that work on it from
/// outside: the URLs the gateway is called by, and how long its signing keys overlap.
package struct DataDirectory: Sendable {
    /// Its path.
    package let path: String

    /// A directory; nothing is touched yet.
    package init(_ path: String) {
        self.path = path
    }

    private var identityPath: String { path + "/gateway.json" }

    /// Makes the directory, mode 0700, where it is missing.
    ///
    /// - Throws: ``Faults``.
    package func create() throws(Faults) {
        try requireNoRestore()
        do {
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
        } catch {
            throw Faults("data", "the directory \(path) cannot be made")
        }
    }

    private var identity: JSONObject {
        guard let data = FileManager.default.contents(atPath: identityPath),
            let object = try? JSONValue(parsing: Array(data)).objectValue
        else { return [:] }
        return object
    }

    /// The URLs the gateway has been called by, the first one first.
    package func urls() -> [String] {
        (identity["urls"]?.arrayValue ?? []).compactMap(\.stringValue)
    }

    /// How long its signing keys overlap, as the gateway was last configured.
    var keyTiming: KeyRing.Timing {
        let signing = identity["signing"]?.objectValue
        return KeyRing.Timing(
            publishLead: signing?["publishLead"]?.integerValue ?? 300,
            signatureLifetime: signing?["lifetime"]?.integerValue ?? 3600)
    }

    /// Notes a URL the gateway is called by, and how long its keys overlap; returns all URLs. The
    /// first one noted is the directory's own: it stays the issuer's and audience's name in
    /// development mode when the port changes.
    func note(url: String, timing: KeyRing.Timing) throws(Faults) -> [String] {
        var urls = urls()
        // A directory started on ever other ports keeps the first and the latest of its names.
        let keptMax = 16
        if !urls.contains(url) {
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
        do {
            try Data(document.serialized).write(
                to: URL(fileURLWithPath: identityPath), options: .atomic)
        } catch {
            throw Faults("data", "the file \(identityPath) cannot be written")
        }
        return urls
    }

    /// Mints a token of the local issuer.
    ///
    /// - Parameters:
    ///   - ttl: Its life, in seconds.
    ///   - now: Seconds since 1970.
    /// - Throws: ``Faults`` when the directory has never been served from, ``SigningError``.
    package func token(
        sub: String, app: String, scopes: Set<Scope>, ttl: Int64,
        attributes: [String: [String]], now: Int64
    ) throws -> String {
        guard let audience = urls().first else {
            throw Faults(
                "data", "\(path) has never been served from; start `timeline-gateway serve` first")
        }
        let ring = try KeyRingStore(directory: path + "/issuer").open(
            timing: .init(publishLead: 300, signatureLifetime: TokenOrder.ttlMax), now: now)
        return try TokenIssuer(
            key: ring.signingKey, iss: KeyService.localIssuer, aud: audience
        ).issue(
            sub: sub, app: app, scopes: scopes, ttl: ttl, attributes: attributes, now: now)
    }
}
