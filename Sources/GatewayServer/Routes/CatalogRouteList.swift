import GatewaySigning
import NIOHTTP1

/// The routes of catalogs and changes.
extension GatewayRoutes {
    /// The path of an app.
    static let appPath = "/v1/apps/:app"

    private var schemas: RequestSchemas { RequestSchemas(limits: limits) }

    /// A document that is YAML or JSON.
    static func yamlOrJSON(_ schema: Schema) -> APIContent {
        ["application/yaml": schema, "application/json": schema]
    }

    var catalogRoutes: [GatewayRoute] {
        let tag = [FieldName.eTag: "Of the catalog, for `If-Match`."] as KeyValuePairs
        let documented = Self.yamlOrJSON(schemas.catalog)
        let unread: Set<APIRefusal> = [.tooLarge, .unsupportedMediaType]
        return [
            GatewayRoute(
                .PUT, Self.appPath + "/catalog",
                APIOperation(
                    "putCatalog", "Declare what an app's widgets depend on",
                    "The whole document. An app exists from its first catalog on.",
                    for: .scopes([.catalogWrite]),
                    [
                        .header(
                            FieldName.ifMatch, .text, "Only over the catalog with this `ETag`."),
                        .header(
                            FieldName.ifNoneMatch, .word(["*"]), "`*`: only if there is none."),
                    ], body: documented,
                    answers: [
                        APIAnswer(200, "It is in force.", .json(.catalogTaken), headers: tag),
                        APIAnswer(
                            201, "It is in force, the app's first.", .json(.catalogTaken),
                            headers: tag),
                    ], refusals: unread.union([.preconditionFailed, .unavailable])),
                putCatalog),
            GatewayRoute(
                .GET, Self.appPath + "/catalog",
                APIOperation(
                    "getCatalog", "Read the catalog", for: .scopes([.catalogWrite]),
                    answers: [
                        APIAnswer(
                            200, "The document, and the media type, as it was put.",
                            [
                                "application/yaml": .anything, "application/json": .anything,
                                "*/*": .anything,
                            ], headers: tag)
                    ], refusals: [.notFound, .notAcceptable]),
                getCatalog),
            GatewayRoute(
                .POST, Self.appPath + "/catalog/diff",
                APIOperation(
                    "compareCatalog", "Hold a catalog against what happened",
                    "Decides the changes of the log by the catalog in force and by this one.",
                    for: .scopes([.catalogWrite]),
                    [
                        .query(
                            "since", .text,
                            "How far back: seconds, or a text such as `24h`, which it is by itself."
                        )
                    ], body: documented,
                    answers: [
                        APIAnswer(
                            200, "What each would have come to.", .json(.catalogDifference),
                            headers: APIAnswer.notStored)
                    ], refusals: unread.union([.notFound, .unavailable])),
                compareCatalog),
        ]
    }

    var changeRoutes: [GatewayRoute] {
        let unread: Set<APIRefusal> = [.tooLarge, .unsupportedMediaType, .notFound, .unavailable]
        return [
            GatewayRoute(
                .POST, Self.appPath + "/changes",
                APIOperation(
                    "postChanges", "Say what data changed",
                    "CloudEvents 1.0: one, structured or binary, or a batch, which is taken whole or "
                        + "not at all. An event is known by `source` and `id`, and counts once.",
                    for: .scopes([.changesWrite]), schemas.eventHeaders, body: schemas.events,
                    answers: [APIAnswer(202, "It is on disk.", .json(.changesTaken))],
                    refusals: unread),
                postChanges),
            GatewayRoute(
                .GET, Self.appPath + "/changes",
                APIOperation(
                    "listChanges", "Read the log, the latest first", for: .scopes([.operate]),
                    [
                        .query("limit", .integer(1...1_000), "How many; 100 by themselves."),
                        .query("before", .integer(1...), "What the page before ended with."),
                    ],
                    answers: [
                        APIAnswer(
                            200, "A page of changes.", .json(.changes), headers: APIAnswer.notStored
                        )
                    ], refusals: [.notFound, .unavailable]),
                listChanges),
            GatewayRoute(
                .POST, Self.appPath + "/changes/explain",
                APIOperation(
                    "explainChanges", "Ask what changes would make stale",
                    "Decides them and changes nothing; at most \(Self.explainedEventsMax) at once.",
                    for: .scopes([.changesWrite]), schemas.eventHeaders, body: schemas.events,
                    answers: [
                        APIAnswer(
                            200, "For each event the rules, and who holds what they hit.",
                            .json(.explainedEvents), headers: APIAnswer.notStored)
                    ], refusals: unread),
                explainChanges),
            GatewayRoute(
                .GET, Self.appPath + "/changes/:sequence/explain",
                APIOperation(
                    "explainChange", "Ask what became of a change", for: .scopes([.operate]),
                    answers: [
                        APIAnswer(
                            200, "The rules, who holds what they hit, and what became of it there.",
                            .json(.explainedChange), headers: APIAnswer.notStored)
                    ], refusals: [.notFound, .unavailable]),
                explainLogged),
            GatewayRoute(
                .POST, Self.appPath + "/reloads",
                APIOperation(
                    "postReload", "Reload everything, a kind, or a client",
                    for: .scopes([.operate]),
                    body: .json(schemas.reload),
                    answers: [APIAnswer(202, "It is on disk.", .json(.reloadTaken))],
                    refusals: unread),
                postReload),
        ]
    }
}
