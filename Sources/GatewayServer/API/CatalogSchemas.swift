import GatewayCore
import WidgetModel

/// What is answered about catalogs, changes and clients.
extension Schema {
    // MARK: Catalog

    /// A catalog that was taken.
    static let catalogTaken = answer([
        "app": app, "kinds": count, "sequence": count.saying("Its place in the log."),
        "warnings": warnings,
    ]).named("CatalogTaken")

    /// An app that was removed.
    static let appRemoved = answer([
        "app": app, "clients": count.saying("Those that went with it."),
        "sequence": count.saying("Of the removal in the log."),
    ])

    /// What changes of the past would have come to by another catalog.
    static let catalogDifference: Schema = {
        let side = answer(["unmatched": count, "broad": count, "refused": count])
            .named("DecidedChanges")
        let figures = answer([
            "holders": count, "changes": count, "reloads": count, "pushes": count,
            "withheld": count,
        ]).named("KindFigures")
        return answer([
            "since": moment, "after": count, "through": count, "changes": count,
            "cut": flag.saying("There were more changes than are looked at."),
            "warnings": warnings, "now": side, "proposed": side,
            "kinds": list(
                answer([
                    "kind": text, "target": target, "now": figures.optional,
                    "proposed": figures.optional,
                ])),
        ]).named("CatalogDifference")
    }()

    /// What a rule makes stale.
    static let target = word([Target.timeline, .recommendations, .relevance, .control].map(\.name))

    // MARK: Changes

    /// Changes that were taken.
    static let changesTaken = answer([
        "accepted": count, "duplicates": count,
        "unmatched": count.saying("Events that hit no rule."),
        "broad": count.saying("Events that hit one for lack of an attribute."),
        "sequence": count.saying("The highest of the events posted, duplicates included."),
    ]).named("ChangesTaken")

    /// What the log says of a change.
    static let logged: Members = [
        "sequence": count, "time": moment, "operation": word(Change.Operation.self),
        "urgency": word(Urgency.self), "source": text.optional, "id": text.optional,
        "properties": list(text).optional,
    ]

    /// Changes of the log, the latest first.
    static let changes = answer([
        "changes": list(
            answer(
                logged + [
                    "entity": text, "entityID": text.optional, "unmatched": flag.optional,
                    "broad": flag.optional,
                    "kinds": map(count).optional.saying("Keys that it raised, by kind."),
                ]
            ).named("LoggedChange")),
        "before": pageEnd,
    ])

    /// With what a page ends.
    static let pageEnd = count.optional.saying("There are more: ask with it for the next page.")

    /// An operator's reload that was taken.
    static let reloadTaken = answer(["sequence": count])

    // MARK: Clients

    private static let cursor = text.saying("Opaque.")

    private static let digest = text.saying(
        "Opaque; stands for what is registered. To be repeated as `Timeline-Registration`.")

    /// A registration that was taken.
    static let registered = answer([
        "client": client,
        "cursor": cursor.saying("Only a client that now builds every timeline may use it."),
        "expires": moment.saying("Unless it is heard of before."), "digest": digest,
        "warnings": warnings,
        "webhookKeys": list(text).optional
            .saying("Public keys of the webhooks' signatures (Standard Webhooks)."),
    ]).named("Registered")

    /// Attributes, single values as scalars.
    private static let attributes = map(any([text, list(text)]))
    /// Parameter values: texts as rules compare them.
    private static let parameters = map(any([text.orNull, list(text)]))

    /// A configured widget.
    static let widget: Members = [
        "kind": text, "family": text, "parameters": parameters, "count": integer(1...),
    ]

    /// A recommendation set.
    static let recommendationSet: Members = [
        "kind": text,
        "items": list(answer(["parameters": parameters, "description": text])),
        "builtAt": cursor.optional,
    ]

    /// A placed control.
    static let control: Members = [
        "kind": text, "id": text, "parameters": parameters,
        "delivery": any(addresses.map { answer($0) }).optional,
    ]

    /// A delivery entry, by its type.
    static let addresses: [Members] = [
        ["type": word(["stream"])],
        [
            "type": word(["apns"]), "pushType": word(["widgets", "controls", "background"]),
            "token": text(matching: "…$").saying("Its first characters."),
            "environment": word(["production", "sandbox"]), "topic": text.optional,
        ],
        ["type": word(["webhook"]), "url": text(matching: "^https://")],
    ]

    /// A registration as it is shown.
    static let clientShown = answer([
        "client": client, "platform": text, "osVersion": text.optional,
        "attributes": attributes.optional, "widgets": list(answer(widget)),
        "recommendations": list(answer(recommendationSet)), "controls": list(answer(control)),
        "delivery": list(any(addresses.map { answer($0) })), "digest": digest,
    ]).named("RegisteredClient")

    /// Registrations, ordered by client.
    static let clients = answer([
        "clients": list(clientShown),
        "after": client.optional.saying("There are more: ask with it for the next page."),
    ])

    /// A poll's answer.
    static let reloads = answer([
        "cursor": cursor.saying("Where the answer stands: the client's once all is rebuilt."),
        "notifications": list(token(claims: notification))
            .saying("Compact JWS of the type `timeline-reload+jwt`; empty when all is fresh."),
    ]).named("Reloads")

    /// The claims of a notification; a reader ignores those that it does not know.
    static let notification = answer([
        "iss": text, "aud": app, "iat": count, "exp": count, "jti": text,
        "seq": count.saying("The latest change it speaks of; it moves no cursor."),
        "reload": list(
            answer([
                "kind": text,
                "parameters": map(text.orNull).optional.saying(
                    "It concerns widgets whose value equals or contains it; one that is absent "
                        + "means every value."),
            ])
        ).optional.saying("Stale timelines."),
        "recommendations": list(text).optional.saying("Kinds with a stale set."),
        "relevance": list(text).optional.saying("Kinds with stale relevance."),
        "controls": list(text).optional.saying("Stale kinds of controls."),
        "all": yes.optional.saying("Everything of the client is stale."),
        "cause": answer(["time": moment]).optional.saying("Of a single change."),
    ]).named("Notification")
}
