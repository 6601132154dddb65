import GatewayCore
import GatewayEngine
import GatewayStorage
import NIOHTTP1
import WidgetModel

/// Every problem in the gateway's responses: the only place for status, code and title.
package enum Problem {
    package static func malformed(_ detail: String) -> ProblemDetails {
        ProblemDetails(
            status: 400, code: "malformed", title: "The request is malformed", detail: detail)
    }

    /// The problem of input that is not HTTP.
    static func notHTTP(_ error: HTTPParserError) -> ProblemDetails {
        error == .headerOverflow ? headersTooLarge : malformed("The request is not HTTP.")
    }

    /// - Parameter detail: States what is wrong with the token, but nothing of its content.
    static func unauthorized(_ code: String, _ detail: String) -> ProblemDetails {
        ProblemDetails(
            status: 401, code: code, title: "A valid bearer token is needed", detail: detail)
    }

    static func engine(_ error: EngineError) -> ProblemDetails {
        switch error {
        case .unknownApp: unknownApp
        case .unknownClient: unknownClient
        case .invalid(let faults): wrong(faults)
        case .eventIDReused(let faults): eventIDReused(faults)
        case .preconditionFailed: preconditionFailed
        case .attributes(let refusal): attributes(refusal)
        case .webhookNeedsBackend:
            forbidden(
                error.code,
                "Only a token with clients:write may register webhooks and broadcast channels.")
        case .tokenRevoked: tokenRevoked
        case .quota(let refusal): quota(refusal)
        case .rate(let limit, let rate, let milliseconds):
            rateLimited(limit, rate, retryAfter: Int((milliseconds + 999) / 1_000))
        case .busy(let contention): busy(contention)
        case .store(let error): store(error)
        case .cluster(let failure): cluster(failure)
        case .channelService(let reason):
            ProblemDetails(
                status: 503, code: error.code,
                title: "APNs did not create or delete a broadcast channel",
                detail: "\(reason). Retry with the same request.", retryAfter: 5)
        }
    }

    private static func cluster(_ failure: EngineError.ClusterFailure) -> ProblemDetails {
        switch failure {
        case .noAnswer:
            unavailable("The database of the cluster does not answer; retry.", retryAfter: 2)
        case .noWrites:
            unavailable("No node of the cluster leads now; retry.", retryAfter: 2)
        case .unknownOutcome:
            unavailable(
                "The cluster does not know whether the write is done; retry, it counts once.",
                retryAfter: 2)
        }
    }

    private static func busy(_ contention: EngineError.Contention) -> ProblemDetails {
        switch contention {
        case .registrations:
            unavailable("Too many registrations of the client are pending; retry later.")
        case .registrationChanges:
            unavailable("The client's registration is being changed; retry later.")
        case .catalogChanges: unavailable("The app's catalog is being changed; retry later.")
        case .eventLoops: unavailable("Too many notifications are queued; retry later.")
        case .explanations:
            unavailable("Too many explain requests are pending; retry in 5 s.", retryAfter: 5)
        }
    }

    private static let tokenRevoked = unauthorized(
        "token-revoked",
        "While the request was pending, its issuer's key or its grant was removed, or its token "
            + "was denied; get another token.")

    static let ticketInvalid = unauthorized(
        "ticket-invalid",
        "The ticket is unknown, was used, or is older than \(StreamTickets.lifetimeSeconds) s; get "
            + "another one.")

    package static func forbidden(_ code: String, _ detail: String) -> ProblemDetails {
        ProblemDetails(
            status: 403, code: code, title: "The token does not allow this", detail: detail)
    }

    static func attributes(_ refusal: ClientAttributes.Rejection) -> ProblemDetails {
        switch refusal {
        case .contradictsToken(let name):
            forbidden(
                "attribute-contradicts-token",
                "The attribute `\(name.prefix(64))` differs from the token's.")
        case .tokenContradicts(let name):
            forbidden(
                "attribute-contradicts-token",
                "The token's `\(name.prefix(64))` differs from the registered one; register again "
                    + "with this token, or have the backend set it again.")
        case .notVouched(let name):
            forbidden(
                "attribute-not-vouched",
                "The attribute `\(name.prefix(64))` must come from the client's token or its "
                    + "backend; the catalog's selfDeclared does not list it.")
        }
    }

    static let unknownApp = ProblemDetails(
        status: 404, code: "unknown-app", title: "The app has no catalog",
        detail: "An app is created by PUT of its first catalog.")

    static let unknownClient = ProblemDetails(
        status: 404, code: "unknown-client", title: "The client is not registered",
        detail: "Register with PUT, then build every timeline.")

    static let unknownChange = ProblemDetails(
        status: 404, code: "unknown-change", title: "The log has no such change",
        detail: "It belongs to another app, is not a change, or was removed by retention.")

    package static let noSuchRoute = ProblemDetails(
        status: 404, code: "not-found", title: "Not found",
        detail: "See /openapi.json for the routes of this port.")

    package static func methodNotAllowed(_ allowed: String) -> ProblemDetails {
        ProblemDetails(
            status: 405, code: "method-not-allowed", title: "Method not allowed",
            detail: "Allowed: \(allowed).")
    }

    static let slowBody = ProblemDetails(
        status: 408, code: "slow-body", title: "The request's body comes too slowly",
        detail: "On average, 4 KiB have to arrive each second, and the whole body within 5 min.")

    static func notAcceptable(_ detail: String) -> ProblemDetails {
        ProblemDetails(
            status: 406, code: "not-acceptable", title: "No such representation", detail: detail)
    }

    /// - Parameter digest: The digest of the registration in force.
    static func registrationMismatch(_ digest: String) -> ProblemDetails {
        ProblemDetails(
            status: 409, code: "registration-mismatch",
            title: "The client's registration has a different digest",
            detail: "Read the registration with GET, update what is missing, and retry with its "
                + "digest.", digest: digest)
    }

    static let preconditionFailed = ProblemDetails(
        status: 412, code: "precondition-failed", title: "The catalog's ETag does not match",
        detail: "Read the catalog again and retry with its current ETag.")

    package static func tooLarge(_ detail: String) -> ProblemDetails {
        ProblemDetails(
            status: 413, code: "too-large", title: "The request is too large", detail: detail)
    }

    static func unsupportedMediaType(_ detail: String) -> ProblemDetails {
        ProblemDetails(
            status: 415, code: "unsupported-media-type", title: "Unsupported media type",
            detail: detail)
    }

    /// - Parameter codings: The field `Content-Encoding`.
    static func unsupportedContentEncoding(_ codings: String) -> ProblemDetails {
        ProblemDetails(
            status: 415, code: unsupportedContentEncodingCode,
            title: "Unsupported content coding",
            detail: "Content-Encoding is \(codings.prefix(64)); send the body without a coding.")
    }

    /// The code of the problem whose response names the supported coding (RFC 9110 section
    /// 15.5.16).
    static let unsupportedContentEncodingCode = "unsupported-content-encoding"

    static func wrong(_ faults: Faults) -> ProblemDetails {
        let count = faults.count
        return ProblemDetails(
            status: 422, code: "invalid", title: "The document is well-formed but invalid",
            detail: count == 1 ? "1 error was found." : "\(count) errors were found.",
            faults: faults.list)
    }

    /// - Parameter place: `app` or `client`.
    static func wrongName(_ place: String) -> ProblemDetails {
        wrong(Faults(place, "must be 1 to 128 characters of A-Z a-z 0-9 . _ ~ -"))
    }

    static func eventIDReused(_ faults: Faults) -> ProblemDetails {
        ProblemDetails(
            status: 422, code: "event-id-reused",
            title: "An event id was already used with other data",
            detail: "Source and id identify one event permanently; nothing was accepted.",
            faults: faults.list)
    }

    /// The problem for a write that exceeds the quota of its app.
    private static func quota(_ refusal: AppQuota.Rejection) -> ProblemDetails {
        switch refusal {
        case .tooManyClients(let limit):
            return ProblemDetails(
                status: 422, code: "too-many-clients",
                title: "The app has too many clients",
                detail: "Remove unused clients, or raise `limits.clientsPerApp`.",
                faults: Faults(
                    "",
                    "exceeds the limit of \(limit) clients per app "
                        + "(`limits.clientsPerApp`)"
                ).list)
        case .logFull(let used, let adding, let limit):
            let seconds = 60
            return ProblemDetails(
                status: 429, code: "log-full", title: "The app's share of the log is full",
                detail: "The app uses \(used) of \(limit) bytes in the log "
                    + "(`limits.logBytesPerApp`); this request needs \(adding) more, and nothing "
                    + "was accepted. Retention (`retention.age`, `retention.changes`) frees space: "
                    + "retry in \(seconds) s, or raise the limit.", retryAfter: seconds)
        case .exceedsLog(let adding, let limit):
            return tooLarge(
                "The request needs \(adding) bytes in the log, and an app may use \(limit) "
                    + "(`limits.logBytesPerApp`): send smaller requests, or raise the limit.")
        case .tooManyStarts(let limit):
            return ProblemDetails(
                status: 429, code: "too-many-starts",
                title: "Too many starts of the app can still be pushed",
                detail: "At most \(limit) may, each until its `ttl` is over. Give starts a shorter "
                    + "one, or name more clients with each.", retryAfter: 60)
        }
    }

    static let tooManyStreams = ProblemDetails(
        status: 429, code: "too-many-streams", title: "The client has too many waiting polls",
        detail: "A newer one has taken the place of this one (`streams.perClient`).",
        retryAfter: 5)

    /// - Parameter retryAfter: The seconds until a request is admitted again.
    static func rateLimited(
        _ reason: RequestLimit, _ rate: TokenRate, retryAfter: Int
    ) -> ProblemDetails {
        let seconds = max(1, retryAfter)
        let counted =
            switch reason {
            case .address: "requests from one source address (`rates.address`)"
            case .app: "requests for one app (`rates.app`)"
            case .client: "requests for one client (`rates.client`)"
            case .tickets: "tickets of one client (`rates.tickets`)"
            case .refusedTokens:
                "invalid tokens from one source address, which others may share "
                    + "(`rates.refusedTokens`)"
            case .pushAddresses: "new push addresses of one client (`rates.pushAddresses`)"
            case .bytesInWork: "bytes in work"
            }
        let remark =
            [.pushAddresses, .refusedTokens, .tickets].contains(reason)
            ? "" : "; each 16 KiB of a body counts as one more"
        var problem = ProblemDetails(
            status: 429, code: "rate-limited", title: "Too many requests",
            detail: "Limit: \(rate.count) \(counted) in \(rate.period / 1_000) s"
                + "\(remark). Retry in \(seconds) s.",
            retryAfter: seconds)
        problem.rateLimit = .init(
            policy: reason.rawValue, quota: Int(clamping: rate.count),
            window: Int(clamping: rate.period / 1_000))
        return problem
    }

    static let headersTooLarge = ProblemDetails(
        status: 431, code: "headers-too-large", title: "The request's headers are too large",
        detail: "At most 100 fields and 16 KiB in total are allowed.")

    package static func unavailable(_ detail: String, retryAfter: Int = 1) -> ProblemDetails {
        ProblemDetails(
            status: 503, code: "unavailable", title: "Temporarily unavailable",
            detail: detail, retryAfter: retryAfter)
    }

    static func document(_ refusal: DocumentRefusal) -> ProblemDetails {
        switch refusal {
        case .malformed(let detail): malformed(detail)
        case .tooLarge(let detail): tooLarge(detail)
        case .unsupportedMediaType(let detail): unsupportedMediaType(detail)
        case .wrong(let faults): wrong(faults)
        }
    }

    static func store(_ error: StoreError) -> ProblemDetails {
        switch error {
        case .busy:
            unavailable("The write queue is full; retry later.")
        case .closed:
            unavailable("The gateway is shutting down; retry later.", retryAfter: 2)
        case .notLeading: cluster(.noWrites)
        case .unconfirmed: cluster(.unknownOutcome)
        case .unavailable, .alreadyInUse, .newerVersion, .missing, .corrupt, .rejected:
            unavailable("The store does not accept writes; an operator must fix it.", retryAfter: 5)
        }
    }
}

extension HTTPRequestHead {
    /// The reason to reject a request, independent of its route; `nil` if there is none.
    func problem(isHTTP2: Bool, _ settings: ConnectionSettings) -> ProblemDetails? {
        if headers.count > settings.headerFieldsMax { return Problem.headersTooLarge }
        // The decoder of HTTP/1.1 has the same limit.
        if isHTTP2, fieldSectionBytes > settings.headerBytesMax { return Problem.headersTooLarge }
        var path = uri
        // Sound: the pointer is read only within the closure that provides it.
        if !path.withUTF8({ $0.allSatisfy { $0 > 0x20 && $0 < 0x7F } }) {
            return Problem.malformed("The request target must be percent-encoded ASCII.")
        }
        let hosts = headers.values(FieldName.host)
        // Before HTTP/1.1 the field did not exist.
        if hosts.first?.isEmpty ?? (version != .http1_0) {
            return Problem.malformed("The request has no Host (RFC 9112 section 3.2).")
        }
        if !isHTTP2, hosts.count > 1 {
            // Two servers could disagree on which one counts.
            return Problem.malformed("The request has more than one Host (RFC 9112 section 3.2).")
        }
        return nil
    }

    /// The size of all header fields, as HTTP/2 defines it (RFC 9113 section 6.5.2), without some
    /// of the overhead of the pseudo-header fields.
    private var fieldSectionBytes: Int {
        headers.reduce(uri.utf8.count) { $0 + $1.name.utf8.count + $1.value.utf8.count + 32 }
    }
}
