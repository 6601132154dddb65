import GatewaySigning
import NIOHTTP1
import WidgetModel

/// The routes of clients: their registrations, and what is stale for them.
extension GatewayRoutes {
    /// The path of a client.
    static let clientPath = appPath + "/clients/:client"

    private static let registrationDigest = APIParameter.header(
        FieldName.timelineRegistration, .text,
        "The digest that the client's registration was answered with. Where another one is in force, "
            + "the answer is 409.")

    private var schemas: RequestSchemas { RequestSchemas(limits: limits) }

    var clientRoutes: [GatewayRoute] {
        let own = APIOperation.Access.scopes([.client, .clientsWrite])
        let unread: Set<APIRefusal> = [.tooLarge, .unsupportedMediaType, .notFound, .unavailable]
        let attribute = APIParameter.query(
            "attribute", .text(matching: "^[^:]+:.+$"), "Of clients with this one: `account:42`.")
        return [
            GatewayRoute(
                .GET, Self.appPath + "/clients",
                APIOperation(
                    "listClients", "List registrations", for: .scopes([.clientsWrite]),
                    [
                        attribute,
                        .query("limit", .integer(1...1_000), "How many; 100 by themselves."),
                        .query("after", .text, "What the page before ended with."),
                    ], answers: [APIAnswer(200, "A page of registrations.", .json(.clients))],
                    refusals: [.notFound, .unavailable]),
                listClients),
            GatewayRoute(
                .DELETE, Self.appPath + "/clients",
                APIOperation(
                    "eraseClients", "Erase registrations",
                    "Of everybody with an attribute, which has to be named. Their streams end.",
                    for: .scopes([.clientsWrite]), [attribute],
                    answers: [
                        APIAnswer(
                            200, "They are gone.", .json(.answer(["erased": .count])))
                    ], refusals: [.notFound, .unavailable]),
                eraseClients),
            GatewayRoute(
                .PUT, Self.clientPath,
                APIOperation(
                    "putClient", "Register a client",
                    "The whole registration. Unknown kinds, parameters, families, delivery types "
                        + "and members are warnings. Webhooks are a backend's to register.",
                    for: own, body: .json(schemas.registration),
                    answers: [
                        APIAnswer(200, "It is in force.", .json(.registered)),
                        APIAnswer(201, "It is in force, and new.", .json(.registered)),
                    ], refusals: unread),
                putClient),
            GatewayRoute(
                .PATCH, Self.clientPath,
                APIOperation(
                    "patchClient", "Replace members of a registration",
                    "A merge patch (RFC 7396).", for: own,
                    body: [
                        "application/merge-patch+json": schemas.registrationPatch,
                        "application/json": schemas.registrationPatch,
                    ], answers: [APIAnswer(200, "It is in force.", .json(.registered))],
                    refusals: unread),
                patchClient),
            GatewayRoute(
                .GET, Self.clientPath,
                APIOperation(
                    "getClient", "Read a registration", "Push tokens are masked.", for: own,
                    answers: [APIAnswer(200, "The registration.", .json(.clientShown))],
                    refusals: [.notFound]),
                getClient),
            GatewayRoute(
                .DELETE, Self.clientPath,
                APIOperation(
                    "deleteClient", "Remove a registration", "Its streams end.", for: own,
                    answers: [APIAnswer(204, "It is gone.")], refusals: [.notFound, .unavailable]),
                deleteClient),
            GatewayRoute(
                .POST, Self.clientPath + "/acks",
                APIOperation(
                    "postAcknowledgement", "Say what a client rebuilt", for: .scopes([.client]),
                    [Self.registrationDigest], body: .json(schemas.acknowledgement),
                    answers: [APIAnswer(204, "It counts.")],
                    refusals: unread.union([.conflict])),
                postAcknowledgement),
        ]
    }

    var reloadsRoute: GatewayRoute {
        GatewayRoute(
            .GET, Self.clientPath + "/reloads",
            APIOperation(
                "getReloads", "Ask, or be told, what is stale for a client",
                """
                With `Accept: text/event-stream` it stays open: each event `reload` has a \
                notification as its data, and each id is a cursor to go on from. Anything else is \
                a poll. Without a cursor, or with one that is not known, everything is stale.
                """,
                for: .scopes([.client]),
                [
                    .header(
                        FieldName.lastEventID, .text, "The cursor to go on from, before `since`."),
                    Self.registrationDigest,
                    .header(
                        FieldName.prefer, .text,
                        "`wait=20`: hold a poll that finds nothing so many seconds, at most "
                            + "\(Self.waitSecondsMax) (RFC 7240)."),
                    .query("since", .text, "The cursor to go on from."),
                    .query("kind", .list(.text), "Only of these kinds."),
                ],
                answers: [
                    APIAnswer(
                        200, "What is stale.",
                        ["application/json": .reloads, EventStreamEncoder.mediaType: .text],
                        headers: [
                            FieldName.timelineCursor:
                                "The cursor really resumed from; empty for none.",
                            FieldName.cacheControl: "`no-store`; of a stream also `no-transform`.",
                            FieldName.preferenceApplied: "Of a poll that could wait.",
                            FieldName.accelBuffering: "`no`, of a stream.",
                        ], optionalHeaders: [FieldName.preferenceApplied, FieldName.accelBuffering])
                ], refusals: [.notFound, .conflict, .tooMany, .unavailable]),
            getReloads)
    }
}
