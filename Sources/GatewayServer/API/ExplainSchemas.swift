import GatewayCore
import GatewaySigning
import WidgetModel

/// What is answered to those who ask why, and about pushes.
extension Schema {
    // MARK: From a change

    private static let consideredRule: Schema = {
        let bound = answer([
            "attribute": text, "binding": text, "value": text.optional,
            "unset": yes.optional.saying("The widget's parameter is unset."),
            "missing": yes.optional.saying("The change lacks the attribute."),
        ]).named("BoundAttribute")
        return answer([
            "kind": text, "target": target, "place": text.saying("In the catalog."),
            "verdict": word([
                "hit", "other-entity", "operation-not-listed", "properties-not-listed",
                "literal-differs",
            ]),
            "attribute": text.optional.saying("Whose literal differs."), "broad": flag.optional,
            "keys": list(list(bound)).optional.saying("What it raised."),
        ]).named("ConsideredRule")
    }()

    private static let decided: Members = [
        "entity": text, "entityID": text.optional, "unmatched": flag, "broad": flag,
        "rules": list(consideredRule), "rulesOfOtherEntities": count,
        "rulesNotShown": count.optional, "hint": text.optional,
    ]

    private static let holders = answer([
        "count": count, "widgets": count, "clients": count, "kinds": map(count),
        "platforms": map(count),
        "channels": map(count, names: Outcome.Channel.allCases.map(\.rawValue)),
    ]).named("Holders")

    private static let outcomes: Members = [
        "confirmed": count, "sent": count, "collapsed": count, "withheld": count,
        "unreachable": count,
        "sentBy": map(count, names: Outcome.Channel.allCases.map(\.rawValue)),
        "collapsedInto": list(answer(["sequence": count, "holders": count])),
        "withheldFor": list(
            answer([
                "reason": word(Outcome.Reason.self), "holders": count, "from": moment.optional,
                "until": moment.optional,
            ])),
        "unreachableFor": map(count, names: Outcome.Absence.allCases.map(\.rawValue)),
    ]

    /// What changes would come to.
    static let explainedEvents = answer([
        "catalog": count.saying("The sequence of the catalog that decided."),
        "events": list(
            answer(
                ["source": text, "id": text] + decided + [
                    "holders": holders, "outcomes": answer(outcomes).named("Outcomes"),
                ]
            ).named("ExplainedEvent")),
    ])

    /// What a change of the log came to.
    static let explainedChange = answer(
        logged + decided + [
            "catalog": count, "catalogOfThen": flag.saying("It was in force then."),
            "holders": holders,
            "outcomes": answer(
                outcomes + [
                    "examples": map(list(text), names: outcomeNames)
                        .saying("Some clients by outcome.")
                ]
            ).named("OutcomesWithExamples"),
        ]
    ).named("ExplainedChange")

    private static let outcomeNames = ["confirmed", "sent", "collapsed", "withheld", "unreachable"]

    // MARK: From a client

    private static let standing: Members = [
        "sleeps": yes.optional.saying("The catalog does not declare it, or the set is empty."),
        "fresh": flag.optional,
        "stale": answer([
            "sequence": count, "isEarliest": flag, "latest": count,
            "cause": word(["change", "reload", "catalog", "forgotten"]), "time": moment.optional,
        ]).named("Stale").optional,
        "outcome": word(outcomeNames).optional,
        "channel": word(Outcome.Channel.self).optional,
        "into": count.optional.saying("The later change whose notification said it."),
        "reason": word(
            Outcome.Reason.allCases.map(\.rawValue) + Outcome.Absence.allCases.map(\.rawValue)
        ).optional,
        "until": moment.optional,
    ]

    private static let addressStanding: Members = [
        "for": word(["everything", "timelines", "recommendations", "control"]),
        "control": text.optional, "delivered": count, "failures": count, "underWay": flag,
        "retryAt": moment.optional, "unusable": word(Outcome.Absence.self).optional,
    ]

    /// How everything of a client stands.
    static let explainedClient = answer([
        "client": client, "platform": text, "head": count.saying("The log's."),
        "since": count.saying("Where it registered."), "confirmed": count,
        "heardOf": flag.saying("Since the gateway's start."),
        "widgets": list(answer(widget + standing).named("WidgetStanding")),
        "recommendations": list(answer(recommendationSet + standing).named("SetStanding")),
        "controls": list(answer(control + standing).named("ControlStanding")),
        "streams": list(
            answer(["watermark": count, "lagging": flag, "kinds": list(text).optional])),
        "addresses": list(any(addresses.dropFirst().map { answer($0 + addressStanding) })),
    ]).named("ExplainedClient")

    // MARK: Pushes

    /// A channel of pushes.
    static let pushChannel = word(["widgets", "controls", "background", "webhook"])

    /// Attempts to push, the latest first.
    static let attempts = answer([
        "attempts": list(
            answer([
                "number": count, "time": moment, "client": client, "channel": pushChannel,
                "outcome": word(PushOutcome.self), "ms": count,
                "reason": text.optional.saying("As the other side gave it."),
                "reference": text.optional.saying("What the other side calls the attempt."),
            ]).named("Attempt")),
        "before": pageEnd,
    ])

    /// What an operator has to know of pushes.
    static let events = answer([
        "events": list(
            answer([
                "time": moment, "event": word(OperationalEvents.Kind.self), "times": count,
                "text": text, "client": client.optional,
            ]).named("Event"))
    ])

    /// Pushes that a person asked for.
    static let pushesMade = answer(["pushes": count])

    // MARK: Keys, tokens and configuration

    /// A token that was made.
    static let tokenMade = answer(["token": text, "expires": moment])

    /// Public keys (RFC 7517).
    static let keySet = answer([
        "keys": list(
            answer([
                "kty": word(["OKP", "EC"]), "crv": word(["Ed25519", "P-256"]), "x": text,
                "y": text.optional, "kid": text, "use": word(["sig"]),
                "alg": word(["EdDSA", "ES256"]),
            ]).named("PublicKey"))
    ])

    /// In what two configurations differ.
    static let configurationChanges = answer([
        "changes": list(
            answer([
                "option": text, "takesEffect": word(["now", "at the next start"]),
                "contents": word(["changed"]).optional.saying("Of the file that it names."),
                "before": text.orNull.optional, "after": text.orNull.optional,
            ]).named("ConfigurationChange"))
    ])
}
