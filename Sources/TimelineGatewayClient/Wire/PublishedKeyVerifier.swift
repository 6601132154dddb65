import WidgetModel

/// Verifies notifications against the keys the gateway publishes at `/.well-known/jwks.json`, with
/// OpenSSL on Linux and CryptoKit on Apple's systems.
///
/// The keys come over the connection, so the host that it trusts as the gateway chooses them. They
/// are cached, and fetched again for an unknown key, and after ``keysAgeMax``.
public actor PublishedKeyVerifier: NotificationVerifying {
    /// The limit of a key set, bytes.
    public static let keysBytesMax = 256 * 1024
    /// The shortest interval between fetches, whatever keys notifications name.
    public static let fetchIntervalMin = Duration.seconds(10)
    /// The age after which keys are fetched again, so that withdrawn keys are dropped. If that
    /// fails the old keys stay: an unreachable gateway sends nothing to verify either.
    public static let keysAgeMax = Duration.seconds(3600)
    /// The tolerance for `exp`, seconds: the gateway's clock is seen only in whole seconds of
    /// `Date`.
    static let leewaySeconds: Int64 = 5

    private let connection: any GatewayConnection
    private let app: String
    private let keyType: any VerificationKeys.Type
    private let clock: @Sendable () -> ContinuousClock.Instant
    private var issuer: String?
    private var keys: (any VerificationKeys)?
    private var fetched: ContinuousClock.Instant?
    private var tried: ContinuousClock.Instant?
    private var fetching: Task<Void, Never>?

    /// Creates a verifier of one app's notifications.
    ///
    /// - Parameters:
    ///   - issuer: The gateway's own URL, the `iss` of its notifications. `nil` adopts that of the
    ///     first verified notification, and requires it for every later one.
    ///   - keys: The type that reads the keys.
    ///   - clock: Returns the time.
    package init(
        connection: any GatewayConnection, app: String, issuer: String?,
        keys: any VerificationKeys.Type,
        clock: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        self.connection = connection
        self.app = app
        self.issuer = issuer
        keyType = keys
        self.clock = clock
    }

    /// Verifies a notification in compact serialization and returns its claims.
    ///
    /// - Throws: ``VerificationFailure``.
    public func verify(
        _ notification: String, serverTime: Int64
    ) async throws(VerificationFailure) -> ReloadNotification {
        let signed = try SignedNotification(notification)
        try await checkSignature(of: signed)
        guard let value = try? JSONValue(parsing: signed.payload),
            let claims = try? ReloadNotification(value)
        else {
            throw VerificationFailure(.malformed, "a claim is missing or of a wrong type")
        }
        guard claims.audience == app else {
            throw VerificationFailure(.wrongAudience, "it is for another app")
        }
        guard issuer == nil || claims.issuer == issuer else {
            throw VerificationFailure(.wrongIssuer, "another gateway issued it")
        }
        guard claims.expires > serverTime - Self.leewaySeconds else {
            throw VerificationFailure(.expired, "it has expired by the gateway's own clock")
        }
        issuer = claims.issuer
        return claims
    }

    private func checkSignature(
        of signed: SignedNotification
    ) async throws(VerificationFailure) {
        let now = clock()
        if let keys, let fetched, now - fetched < Self.keysAgeMax {
            do throws(VerificationFailure) {
                return try keys.check(signed)
            } catch {
                guard error == .unknownKey else { throw error }
            }
        }
        await fetchKeys()
        guard let keys else {
            throw VerificationFailure(.keysUnavailable, "cannot fetch the gateway's keys")
        }
        try keys.check(signed)
    }

    /// Fetches the keys, unless the last attempt was a moment ago. Concurrent callers share one
    /// fetch.
    private func fetchKeys() async {
        if let fetching {
            await fetching.value
            return
        }
        let now = clock()
        if let tried, now - tried < Self.fetchIntervalMin { return }
        tried = now
        // The fetch task stores its result itself, because any of its callers may continue first.
        let task = Task {
            let document = await Self.keyDocument(by: connection)
            fetching = nil
            guard let document, let keys = keyType.init(jwks: document) else { return }
            self.keys = keys
            fetched = now
        }
        fetching = task
        await task.value
    }

    /// Returns the JWK Set that a gateway publishes; `nil` if it cannot be fetched.
    package static func keyDocument(by connection: any GatewayConnection) async -> [UInt8]? {
        let request = GatewayRequest(
            target: "/.well-known/jwks.json", responseBytesMax: keysBytesMax)
        guard let response = try? await connection.send(request), response.head.status == 200 else {
            return nil
        }
        return response.body
    }
}
