import GatewaySigning
import WidgetModel

/// Why a request is refused, by status; each is answered with a problem (RFC 9457).
enum APIRefusal: Int, Sendable, CaseIterable {
    case malformed = 400
    case unauthorized = 401
    case forbidden = 403
    case notFound = 404
    case notAcceptable = 406
    case conflict = 409
    case preconditionFailed = 412
    case tooLarge = 413
    case unsupportedMediaType = 415
    case wrong = 422
    case tooMany = 429
    case headersTooLarge = 431
    case unavailable = 503

    /// What it is called among the document's components.
    var name: String {
        switch self {
        case .malformed: "Malformed"
        case .unauthorized: "Unauthorized"
        case .forbidden: "Forbidden"
        case .notFound: "NotFound"
        case .notAcceptable: "NotAcceptable"
        case .conflict: "Conflict"
        case .preconditionFailed: "PreconditionFailed"
        case .tooLarge: "TooLarge"
        case .unsupportedMediaType: "UnsupportedMediaType"
        case .wrong: "Wrong"
        case .tooMany: "TooMany"
        case .headersTooLarge: "HeadersTooLarge"
        case .unavailable: "Unavailable"
        }
    }

    private var description: String {
        switch self {
        case .malformed: "What came is malformed; it will never be taken as it is."
        case .unauthorized: "No valid token came with it (RFC 6750)."
        case .forbidden:
            "The token does not allow it. Whether what it names exists makes no difference."
        case .notFound: "There is no such app, client or change."
        case .notAcceptable: "`Accept` has no media type that there is."
        case .conflict:
            "The registration in force is not the one that `Timeline-Registration` names: the "
                + "client reads it, registers again what it lacks, and goes on."
        case .preconditionFailed:
            "The catalog is not the one that `If-Match` names, or there is one."
        case .tooLarge: "It is larger than a limit, which the detail names."
        case .unsupportedMediaType: "The body's media type is not read here."
        case .wrong:
            "It is well-formed but wrong, or one client more than its app may have; every fault is "
                + "listed with its place."
        case .tooMany:
            "More than a rate allows, more streams than the client may hold, or more bytes than "
                + "the log may hold of the app; nothing was done."
        case .headersTooLarge: "The header fields are too large or too many."
        case .unavailable: "It cannot be taken now; nothing of it was."
        }
    }

    /// The ends of the `type` URIs that problems of this status have.
    var codes: [String] {
        let tokens = TokenRejection.allCases
        return switch self {
        case .malformed: ["malformed"]
        case .unauthorized:
            ["token-missing", "token-revoked"] + tokens.filter(\.isInvalidToken).map(\.code)
        case .forbidden:
            [
                "insufficient-scope", "wrong-app", "wrong-client", "attribute-contradicts-token",
                "attribute-not-vouched", "webhook-needs-backend", "no-local-issuer", "other-origin",
            ] + tokens.filter { !$0.isInvalidToken }.map(\.code)
        case .notFound: ["unknown-app", "unknown-client", "unknown-change"]
        case .notAcceptable: ["not-acceptable"]
        case .conflict: ["registration-mismatch"]
        case .preconditionFailed: ["precondition-failed"]
        case .tooLarge: ["too-large"]
        case .unsupportedMediaType: ["unsupported-media-type"]
        case .wrong: ["invalid", "event-id-reused", "too-many-clients"]
        case .tooMany: ["rate-limited", "too-many-streams", "log-full"]
        case .headersTooLarge: ["headers-too-large"]
        case .unavailable: ["unavailable"]
        }
    }

    private var headers: KeyValuePairs<String, String> {
        switch self {
        case .unauthorized: [FieldName.wwwAuthenticate: "`Bearer`, with what is wrong."]
        case .forbidden:
            [FieldName.wwwAuthenticate: "`Bearer error=\"insufficient_scope\"`, if that is why."]
        case .conflict: [FieldName.timelineRegistration: "The digest of the one in force."]
        case .tooMany:
            [
                FieldName.retryAfter: "Seconds after which to try again.",
                FieldName.rateLimitPolicy: "The rate that was exceeded, if one was.",
                FieldName.rateLimit: "Seconds (`t`) until there is more of it.",
            ]
        case .unavailable: [FieldName.retryAfter: "Seconds after which to try again."]
        default: [:]
        }
    }

    /// As it stands among the routes' other answers.
    var answer: APIAnswer {
        APIAnswer(
            rawValue, description, [ProblemDetails.mediaType: problem], headers: headers,
            optionalHeaders: optionalHeaders)
    }

    private var optionalHeaders: Set<String> {
        switch self {
        case .forbidden: [FieldName.wwwAuthenticate]
        case .tooMany: [FieldName.rateLimitPolicy, FieldName.rateLimit]
        default: []
        }
    }

    private var problem: Schema {
        var members: Schema.Members = [
            "type": .word(codes.map { ProblemDetails.typePrefix + $0 })
                .saying("Stable: what programs go by."),
            "title": .text.saying("The same sentence for every problem of one type."),
            "status": .integer(Int64(rawValue)...Int64(rawValue)),
            "detail": .text.optional.saying("What happened this time, and what to do."),
        ]
        if self == .wrong {
            members = members + ["faults": .list(.fault, countMax: Faults.keptMax)]
        }
        if self == .conflict {
            members = members + ["digest": .text.saying("Of the registration in force.")]
        }
        if self == .tooMany || self == .unavailable {
            members =
                members + [
                    "retryAfter": .count.saying("Seconds after which to try again.")
                ]
        }
        return Schema.answer(members)
    }
}

extension Schema {
    /// One thing wrong, or unusual, in a document.
    static let fault = Schema.answer([
        "place": .text.saying("Such as `widgets[0].dependsOn[1].match.id`; empty for the whole."),
        "message": .text.saying("What is wrong, and what would be right."),
    ]).named("Fault")

    /// What is unusual in a document and was taken all the same.
    static let warnings = Schema.list(fault).saying(
        "What is unusual, or not known here and was left out; the rest is in force.")
}
