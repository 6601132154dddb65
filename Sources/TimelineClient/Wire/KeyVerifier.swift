import WidgetModel

/// Verifies notifications against the keys the gateway publishes at `/.well-known/jwks.json`, with
/// whatever library reads such keys.
///
/// The keys come over the connection, so whoever it trusts as the gateway chooses them. They are
/// cached, fetched again for a key that is not among them, and after ``keysAgeMax``.
public actor KeyVerifier<Keys: VerificationKeys>: NotificationVerifying {
    /// Longest set of keys that is read, bytes.
    public static var keysBytesMax: Int { 256 * 1024 }
    /// Keys are fetched no more often than this, whatever notifications name.
    public static var fetchIntervalMin: Duration { .seconds(10) }
    /// Keys older than this are fetched again, so that a withdrawn one is forgotten. While they
    /// cannot be fetched the old ones stay: an unreachable gateway sends nothing to verify either.
    public static var keysAgeMax: Duration { .seconds(3600) }
    /// How far the gateway's clock, as seen in whole seconds of `Date`, may lag behind `exp`.
    static var leewaySeconds: Int64 { 5 }

    private let connection: any GatewayConnection
    private let app: String
    private let clock: @Sendable () -> ContinuousClock.Instant
    private var issuer: String?
    private var keys: Keys?
    private var fetched: ContinuousClock.Instant?
    private var tried: ContinuousClock.Instant?
    private var fetching: Task<Void, Never>?

    /// A verifier of one app's notifications.
    ///
    /// - Parameter issuer: The gateway's own URL, `iss` of what it signs; `nil` takes that of the
    ///   first notification that verifies and holds every later one to it.
    public init(connection: any GatewayConnection, app: String, issuer: String? = nil) {
        self.init(connection: connection, app: app, issuer: issuer, clock: { .now })
    }

    /// A verifier with a clock of the caller's choice.
    package init(
        connection: any GatewayConnection, app: String, issuer: String?,
        clock: @escaping @Sendable () -> ContinuousClock.Instant
    ) {
        self.connection = connection
        self.app = app
        self.issuer = issuer
        self.clock = clock
    }

    /// The claims of a notification in the compact form.
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
                .keysUnavailable, "the gateway's keys could not be fetched")
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

    /// Fetches the keys, unless that was tried a moment ago; several callers share one fetch.
    private func fetchKeys() async {
        if let fetching {
            await fetching.value
            return
        }
        let now = clock()
        if let tried, now - tried < Self.fetchIntervalMin { return }
        tried = now
        // The fetch itself keeps what it brings: of its callers any may go on first.
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

    /// The keys a gateway publishes; `nil` when they are not to be had.
    package static func publishedKeys(by connection: any GatewayConnection) async -> Keys? {
        let request = GatewayRequest(
            target: "/.well-known/jwks.json", responseBytesMax: keysBytesMax)
        guard let response = try? await connection.send(request), response.head.status == 200 else {
            return nil
        }
        return Keys(jwks: response.body)
    }
}
