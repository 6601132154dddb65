import WidgetModel

/// Verifies notifications against the keys the gateway publishes at `/.well-known/jwks.json`, with
/// any library that can read such keys.
///
/// The keys come over the connection, so the host that it trusts as the gateway chooses them. They
/// are cached, and fetched again for an unknown key, and after ``keysAgeMax``.
public actor KeyVerifier<Keys: VerificationKeys>: NotificationVerifying {
    /// The limit of a key set, bytes.
    public static var keysBytesMax: Int { 256 * 1024 }
    /// The shortest interval between fetches, whatever keys notifications name.
    public static var fetchIntervalMin: Duration { .seconds(10) }
    /// The age after which keys are fetched again, so that withdrawn keys are dropped. If that
    /// fails the old keys stay: an unreachable gateway sends nothing to verify either.
    public static var keysAgeMax: Duration { .seconds(3600) }
    /// The tolerance for `exp`, seconds: the gateway's clock is seen only in whole seconds of
    /// `Date`.
    static var leewaySeconds: Int64 { 5 }

    private let connection: any GatewayConnection
    private let app: String
    private let clock: @Sendable () -> ContinuousClock.Instant
    private var issuer: String?
    private var keys: Keys?
    private var fetched: ContinuousClock.Instant?
    private var tried: ContinuousClock.Instant?
    private var fetching: Task<Void, Never>?

    /// Creates a verifier of one app's notifications.
    ///
    /// - Parameter issuer: The gateway's own URL, the `iss` of its notifications. `nil` adopts that
    ///   of the first verified notification, and requires it for every later one.
    public init(connection: any GatewayConnection, app: String, issuer: String? = nil) {
        self.init(connection: connection, app: app, issuer: issuer, clock: { .now })
    }

    /// Creates a verifier with an explicit clock.
    package init(
        connection: any GatewayConnection, app: String, issuer: String?,
        clock: @escaping @Sendable () -> ContinuousClock.Instant
    ) {
        self.connection = connection
        self.app = app
        self.issuer = issuer
        self.clock = clock
    }

    /// Verifies a notification in compact serialization and returns its claims.
    ///
    /// - Throws: ``TimelineClient/VerificationFailure``.
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
        if keys?.check(signed) ?? .unknownKey == .unknownKey
            || fetched.map({ now - $0 >= Self.keysAgeMax }) ?? true
        {
            await fetchKeys()
        }
        guard let keys else {
            throw VerificationFailure(
                .keysUnavailable, "cannot fetch the gateway's keys")
        }
        switch keys.check(signed) {
        case .signed: return
        case .unknownKey:
            throw VerificationFailure(
                .unknownKey, "the gateway publishes no key with its kid")
        case .forged:
            throw VerificationFailure(.badSignature, "the signature does not verify")
        }
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
            let keys = await Self.publishedKeys(by: connection)
            fetching = nil
            guard let keys else { return }
            self.keys = keys
            fetched = now
        }
        fetching = task
        await task.value
    }

    /// Returns the keys that a gateway publishes; `nil` if they cannot be fetched.
    package static func publishedKeys(by connection: any GatewayConnection) async -> Keys? {
        let request = GatewayRequest(
            target: "/.well-known/jwks.json", responseBytesMax: keysBytesMax)
        guard let response = try? await connection.send(request), response.head.status == 200 else {
            return nil
        }
        return Keys(jwks: response.body)
    }
}
