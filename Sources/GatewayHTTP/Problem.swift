import GatewayCore
import GatewayEngine
import GatewayStorage
import NIOHTTP1
import WidgetModel

/// Every problem in the gateway's responses: the only place for status, code and title.
package enum Problem {
    static func malformed(_ detail: String) -> ProblemDetails {
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

    /// The problem for an engine error.
    static func engine(_ error: EngineError) -> ProblemDetails {
        switch error {
        case .unknownApp: unknownApp
        case .unknownClient: unknownClient
        case .invalid(let faults): wrong(faults)
        case .eventIDReused(let faults): eventIDReused(faults)
        case .preconditionFailed: preconditionFailed
        case .attributes(let refusal): attributes(refusal)
        case .webhookNeedsBackend:
            forbidden(error.code, "Only a token with clients:write may register webhooks.")
        case .tokenRevoked: tokenRevoked
        case .quota(let refusal): quota(refusal)
        case .busy(let contention): busy(contention)
        case .store(let error): store(error)
        }
    }

    private static func busy(_ contention: EngineError.Contention) -> ProblemDetails {
        switch contention {
        case .registrations:
            unavailable("Too many registrations of the client wait; try again.")
        case .registrationChanges:
            unavailable("The client's registration keeps changing; try again.")
        case .catalogChanges: unavailable("The app's catalog keeps changing; try again.")
        case .eventLoops: unavailable("Too much waits to be sent; try again.")
        case .explanations:
            unavailable("Too many requests wait to be explained; ask again in 5 s.", retryAfter: 5)
        }
    }

    private static let tokenRevoked = unauthorized(
        "token-revoked",
        "While the request waited, the issuer's key or the grant it was admitted by was taken away, "
            + "or the token was denied; get another one.")

    package static func forbidden(_ code: String, _ detail: String) -> ProblemDetails {
        ProblemDetails(
            status: 403, code: code, title: "The token does not allow this", detail: detail)
    }

    static func attributes(_ refusal: ClientAttributes.Refusal) -> ProblemDetails {
        switch refusal {
        case .contradictsToken(let name):
            forbidden(
                "attribute-contradicts-token",
                "The attribute `\(name.prefix(64))` is not what the token vouches for.")
        case .tokenContradicts(let name):
            forbidden(
                "attribute-contradicts-token",
                "The token vouches for another `\(name.prefix(64))` than is registered; register "
                    + "again with this token, or have the backend set it again.")
        case .notVouched(let name):
            forbidden(
                "attribute-not-vouched",
                "The attribute `\(name.prefix(64))` must come from the client's token or its "
                    + "backend; the catalog's selfDeclared does not list it.")
        }
    }

    static let unknownApp = ProblemDetails(
        status: 404, code: "unknown-app", title: "The app has no catalog",
        detail: "An app exists when its first catalog was put.")

    static let unknownClient = ProblemDetails(
        status: 404, code: "unknown-client", title: "The client is not registered",
        detail: "Register with PUT, then build every timeline.")

    static let unknownChange = ProblemDetails(
        status: 404, code: "unknown-change", title: "The log has no such change",
        detail: "It is of another app, is no change, or is older than what the log keeps.")

    package static let noSuchRoute = ProblemDetails(
        status: 404, code: "not-found", title: "There is nothing at this path",
        detail: "Read /openapi.json: it says what there is at this port.")

    package static func methodNotAllowed(_ allowed: String) -> ProblemDetails {
        ProblemDetails(
            status: 405, code: "method-not-allowed", title: "The path does not take this method",
            detail: "It takes \(allowed).")
    }

    static func notAcceptable(_ detail: String) -> ProblemDetails {
        ProblemDetails(
            status: 406, code: "not-acceptable", title: "No such representation", detail: detail)
    }

    /// - Parameter digest: The digest of the registration in force.
    static func registrationMismatch(_ digest: String) -> ProblemDetails {
        ProblemDetails(
            status: 409, code: "registration-mismatch",
            title: "The client is registered otherwise than it believes",
            detail: "Read the registration with GET, register again what it lacks, and repeat with "
                + "its digest.", digest: digest)
    }

    static let preconditionFailed = ProblemDetails(
        status: 412, code: "precondition-failed", title: "The catalog is not the one expected",
        detail: "Read the catalog again and repeat with its current ETag.")

    package static func tooLarge(_ detail: String) -> ProblemDetails {
        ProblemDetails(
            status: 413, code: "too-large", title: "The request is too large", detail: detail)
    }

    static func unsupportedMediaType(_ detail: String) -> ProblemDetails {
        ProblemDetails(
            status: 415, code: "unsupported-media-type", title: "The media type is not read here",
            detail: detail)
    }

    static func wrong(_ faults: Faults) -> ProblemDetails {
        let count = faults.count
        return ProblemDetails(
            status: 422, code: "invalid", title: "The document is well-formed but wrong",
            detail: count == 1 ? "1 fault was found." : "\(count) faults were found.",
            faults: faults.list)
    }

    /// - Parameter place: `app` or `client`.
    static func wrongName(_ place: String) -> ProblemDetails {
        wrong(Faults(place, "must be 1 to 128 characters of A-Z a-z 0-9 . _ ~ -"))
    }

    static func eventIDReused(_ faults: Faults) -> ProblemDetails {
        ProblemDetails(
            status: 422, code: "event-id-reused",
            title: "An event id was used before with other data",
            detail: "The pair of source and id names one event for ever; nothing was taken.",
            faults: faults.list)
    }

    /// The problem for a write that exceeds the quota of its app.
    private static func quota(_ refusal: AppQuota.Refusal) -> ProblemDetails {
        switch refusal {
        case .tooManyClients(let limit):
            return ProblemDetails(
                status: 422, code: "too-many-clients",
                title: "The app has as many clients as it may",
                detail: "Remove clients that are gone, or raise `limits.clientsPerApp`.",
                faults: Faults(
                    "",
                    "would be one client more than the \(limit) that one app may have "
                        + "(`limits.clientsPerApp`)"
                ).list)
        case .logFull(let used, let adding, let limit):
            let seconds = 60
            return ProblemDetails(
                status: 429, code: "log-full", title: "The log holds as much of the app as it may",
                detail: "It holds \(used) bytes of the app and at most \(limit) are allowed "
                    + "(`limits.logBytesPerApp`); these are \(adding) more, and nothing of them "
                    + "was taken. Older entries leave by `retention.age` and `retention.changes`: "
                    + "retry in \(seconds) s, or raise the limit.", retryAfter: seconds)
        case .exceedsLog(let adding, let limit):
            return tooLarge(
                "It takes \(adding) bytes of the log, in which one app may have \(limit) "
                    + "(`limits.logBytesPerApp`): send less at once, or raise the limit.")
        }
    }

    static let tooManyStreams = ProblemDetails(
        status: 429, code: "too-many-streams", title: "The client holds as many streams as it may",
        detail: "Close one of them first.", retryAfter: 5)

    /// - Parameter retryAfter: The seconds until a request is admitted again.
    static func rateLimited(
        _ reason: RequestLimit, _ rate: TokenRate, retryAfter: Int
    ) -> ProblemDetails {
        let seconds = max(1, retryAfter)
        let counted =
            switch reason {
            case .address: "requests of one source address (`rates.address`)"
            case .app: "requests of one app (`rates.app`)"
            case .client: "requests of one client (`rates.client`)"
            case .refusedTokens:
                "tokens that are not valid from one source address (`rates.refusedTokens`)"
            case .bytesInWork: "bytes in work"
            }
        var problem = ProblemDetails(
            status: 429, code: "rate-limited", title: "Too many requests",
            detail: "At most \(rate.count) in \(rate.period / 1_000) s are allowed of \(counted); "
                + "every 16 KiB of a body count as one more. Retry in \(seconds) s.",
            retryAfter: seconds)
        problem.rateLimit = .init(
            policy: reason.rawValue, quota: Int(clamping: rate.count),
            window: Int(clamping: rate.period / 1_000))
        return problem
    }

    static let headersTooLarge = ProblemDetails(
        status: 431, code: "headers-too-large", title: "The request's headers are too large",
        detail: "All fields together may have 16 KiB, and there may be 100 of them.")

    package static func unavailable(_ detail: String, retryAfter: Int = 1) -> ProblemDetails {
        ProblemDetails(
            status: 503, code: "unavailable", title: "The gateway cannot take this now",
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
            unavailable("Too much is waiting for the disk; try again.")
        case .closed:
            unavailable("The gateway is stopping; try again.", retryAfter: 2)
        case .unavailable, .alreadyInUse, .newerVersion, .missing, .corrupt, .rejected:
            unavailable("The store does not take writes; an operator has to look.", retryAfter: 5)
        }
    }
}
