import GatewaySigning
import NIOHTTP1
import WidgetModel

/// The routes of operators, and those of tokens and keys.
extension GatewayRoutes {
    private var schemas: RequestSchemas { RequestSchemas(limits: limits) }

    var operatorRoutes: [GatewayRoute] {
        let unread: Set<APIRefusal> = [.tooLarge, .unsupportedMediaType, .notFound, .unavailable]
        return [
            GatewayRoute(
                .DELETE, Self.appPath,
                APIOperation(
                    "deleteApp", "Remove an app",
                    "Its catalog and its clients; their streams end. It may begin anew.",
                    for: .scopes([.operate]),
                    answers: [APIAnswer(200, "It is gone.", .json(.appRemoved))],
                    refusals: [.notFound, .unavailable]),
                deleteApp),
            GatewayRoute(
                .GET, Self.clientPath + "/explain",
                APIOperation(
                    "explainClient", "Ask how everything of a client stands",
                    for: .scopes([.operate]),
                    answers: [
                        APIAnswer(
                            200, "Each widget, set and control, streams and addresses.",
                            .json(.explainedClient), headers: APIAnswer.notStored)
                    ], refusals: [.notFound]),
                explainClient),
            GatewayRoute(
                .POST, Self.clientPath + "/pushes",
                APIOperation(
                    "postPush", "Push to a client once more",
                    "Beside its budget; a refusal costs the client nothing.",
                    for: .scopes([.operate]), body: .json(.request(["channel": .pushChannel])),
                    answers: [APIAnswer(202, "They are under way.", .json(.pushesMade))],
                    refusals: unread),
                postPush),
            GatewayRoute(
                .GET, Self.appPath + "/attempts",
                APIOperation(
                    "listAttempts", "Read what was pushed, the latest first",
                    for: .scopes([.operate]),
                    [
                        .query("client", .client, "Of this client."),
                        .query("channel", .pushChannel, "By this channel."),
                        .query("outcome", .word(PushOutcome.self), "With this outcome."),
                        .query("before", .integer(0...), "What the page before ended with."),
                        .query("limit", .integer(1...1_000), "How many; 100 by themselves."),
                    ],
                    answers: [
                        APIAnswer(
                            200, "A page of attempts.", .json(.attempts),
                            headers: APIAnswer.notStored)
                    ], refusals: [.notFound, .unavailable]),
                listAttempts),
            GatewayRoute(
                .GET, Self.appPath + "/events",
                APIOperation(
                    "listEvents", "Read what an operator has to know of pushes",
                    for: .scopes([.operate]),
                    answers: [
                        APIAnswer(
                            200, "The latest events, each with how often it happened.",
                            .json(.events), headers: APIAnswer.notStored)
                    ], refusals: [.notFound]),
                listEvents),
        ]
    }

    var configurationRoutes: [GatewayRoute] {
        [
            GatewayRoute(
                .POST, "/v1/configuration/reload",
                APIOperation(
                    "reloadConfiguration", "Read the configuration again",
                    "All of it is taken over, or, where anything is wrong, nothing. For tokens of "
                        + "the app `*`.", for: .scopes([.operate]),
                    answers: [
                        APIAnswer(200, "What became different.", .json(.configurationChanges))
                    ], refusals: [.wrong]),
                reloadConfiguration),
            GatewayRoute(
                .POST, "/v1/configuration/diff",
                APIOperation(
                    "compareConfiguration", "Ask what another configuration would change",
                    "Whatever its media type says, it is read as YAML or JSON. For tokens of the "
                        + "app `*`.", for: .scopes([.operate]), body: Self.yamlOrJSON(.anything),
                    answers: [
                        APIAnswer(200, "What would be different.", .json(.configurationChanges))
                    ], refusals: [.tooLarge, .wrong]),
                compareConfiguration),
        ]
    }

    var keyRoutes: [GatewayRoute] {
        [
            GatewayRoute(
                .POST, Self.appPath + "/tokens",
                APIOperation(
                    "postToken", "Have a token made for a client",
                    "By the gateway's own issuer, where it is enabled.",
                    for: .scopes([.tokensIssue]), body: .json(schemas.tokenOrder),
                    answers: [
                        APIAnswer(
                            201, "The token.", .json(.tokenMade), headers: APIAnswer.notStored)
                    ], refusals: [.tooLarge, .unsupportedMediaType, .notFound]),
                postToken),
            GatewayRoute(
                .GET, "/.well-known/jwks.json",
                APIOperation(
                    "getKeys", "Read the keys that notifications are signed with",
                    for: .anyone,
                    answers: [
                        APIAnswer(
                            200, "A JWK set (RFC 7517).", [JWKSet.mediaType: .keySet],
                            headers: [FieldName.cacheControl: "How long the set may be kept."])
                    ]),
                getKeys),
        ]
    }
}
