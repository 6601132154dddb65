import WidgetModel

/// Schemas of the documents that peers send, by the limits that are in force.
struct RequestSchemas: Sendable {
    let limits: Limits

    private var name: Schema { .name(limits.stringBytesMax) }
    private func names(countMax: Int) -> Schema { .list(name, countMax: countMax) }

    private var attributes: Schema {
        .map(
            .any([.scalar, .list(.scalar, countMax: limits.listValuesMax)]),
            countMax: limits.attributesMax)
    }

    private var parameters: Schema {
        .map(
            .any([.scalar.orNull, .list(.scalar, countMax: limits.listValuesMax)]),
            countMax: limits.attributesMax
        ).saying("Resolved values by parameter; `null` where the person chose none.")
    }

    // MARK: Catalog

    /// What an app declares. A catalog is written by its app's makers: an unknown member is a slip.
    var catalog: Schema {
        .request(
            [
                "app": name.saying("The app of the URL."),
                "selfDeclared": names(countMax: limits.attributesMax).optional
                    .saying("Client attributes that a client may state itself."),
                "entities": .map(entity, countMax: limits.catalogKindsMax).optional,
                "intents": .map(intent, countMax: limits.catalogKindsMax).optional,
                "widgets": .list(widget, countMax: limits.catalogKindsMax),
            ], isClosed: true
        ).named("Catalog")
    }

    private var entity: Schema {
        .request(
            ["properties": names(countMax: limits.propertiesMax).optional], isClosed: true)
    }

    private var intent: Schema {
        let parameter = Schema.request(
            [
                "name": name, "title": name.optional,
                "type": name.saying("An entity, or a built-in type; `[Type]` for several values."),
                "default": Schema.any([.scalar, .list(.scalar, countMax: limits.listValuesMax)])
                    .optional,
            ], isClosed: true)
        return .request(
            [
                "title": name.optional, "description": name.optional,
                "parameters": .list(parameter, countMax: limits.attributesMax).optional,
            ], isClosed: true)
    }

    private var widget: Schema {
        .request(
            [
                "kind": name, "configuration": .word(WidgetConfigurationType.self),
                "intent": name.optional, "displayName": name.optional,
                "description": name.optional, "families": names(countMax: 32).optional,
                "platforms": names(countMax: 32).optional,
                "collapse": Schema.any([.integer(0...3_600_000), .text]).optional
                    .saying("Milliseconds, or a text such as `200ms` or `2s`."),
                "dependsOn": rules.optional,
                "recommendations": Schema.request(["dependsOn": rules.optional], isClosed: true)
                    .optional,
            ], isClosed: true
        ).named("WidgetDeclaration")
    }

    private var rules: Schema {
        .list(
            Schema.request(
                [
                    "entity": name,
                    "match": .map(.scalar, countMax: limits.bindingsMax).optional.saying(
                        "By attribute of the change: a literal, `$parameter` or `$client.attribute`."
                    ),
                    "properties": names(countMax: limits.propertiesMax).optional,
                    "operations": .list(.word(Change.Operation.self), countMax: 8).optional,
                ], isClosed: true
            ).named("DependencyRule"), countMax: limits.kindRulesMax)
    }

    // MARK: Changes

    /// The `data` of an event; other members are the sender's own.
    var change: Schema {
        .request([
            "entity": name, "id": Schema.scalar.optional,
            "operation": .word(Change.Operation.self).optional,
            "properties": names(countMax: limits.propertiesMax).optional
                .saying("What changed; none stands for all."),
            "attributes": attributes.optional
                .saying("What rules match; one that is missing agrees with every value."),
            "urgency": .word(Urgency.self).optional,
        ]).named("Change")
    }

    private var event: Schema {
        .request([
            "specversion": .word(["1.0"]), "type": name.saying("Not interpreted."),
            "source": name, "id": name.saying("With `source` it names the event for ever."),
            "time": Schema.moment.optional, "datacontenttype": name.optional,
            "subject": name.optional, "dataschema": name.optional, "data": change.optional,
            "traceparent": Schema.text.optional.saying("W3C Trace Context."),
            "tracestate": Schema.text.optional,
            "data_base64": Schema.text.optional.saying("In place of `data`."),
        ]).named("CloudEvent")
    }

    /// Events: structured, as a batch, or binary with the attributes as headers.
    var events: APIContent {
        [
            "application/cloudevents+json": event,
            "application/cloudevents-batch+json": .list(event, countMax: limits.postEventsMax),
            "application/json": change,
        ]
    }

    /// The headers of an event in binary mode.
    var eventHeaders: [APIParameter] {
        [
            ("specversion", Schema.word(["1.0"])), ("type", name), ("source", name), ("id", name),
            ("time", Schema.moment), ("traceparent", Schema.text), ("tracestate", Schema.text),
        ].map { attribute, schema in
            .header(
                "ce-" + attribute, schema, "Of an event in binary mode, whose data is the body.")
        }
    }

    /// What an operator wants reloaded.
    var reload: Schema {
        .any([
            .request(["all": .yes]), .request(["kind": name]), .request(["client": .client]),
        ])
    }

    // MARK: Clients

    private var delivery: Schema {
        .any([
            .request(["type": .word(["stream"])]),
            .request([
                "type": .word(["apns"]), "pushType": .word(["widgets", "controls", "background"]),
                "token": .text(matching: "^([0-9A-Fa-f]{2})+$"),
                "environment": .word(["production", "sandbox"]).optional, "topic": name.optional,
            ]),
            .request([
                "type": .word(["webhook"]), "url": .text(matching: "^https://"),
            ]),
            .request([
                "type": .text(otherThan: ["stream", "apns", "webhook"])
                    .saying("Left out, with a warning.")
            ]),
        ]).named("Delivery")
    }

    private func registrationMembers(attributes: Schema) -> Schema.Members {
        let countMax = limits.registrationWidgetsMax
        let item = Schema.request([
            "parameters": parameters.optional, "description": Schema.text.optional,
        ])
        return [
            "osVersion": .text(matching: "^[0-9]+(\\.[0-9]+){0,3}$").optional,
            "attributes": attributes.optional,
            "widgets": .list(
                .request([
                    "kind": name, "family": name, "parameters": parameters.optional,
                    "count": .integer(1...).optional,
                ]), countMax: countMax
            ).optional,
            "recommendations": .list(
                .request([
                    "kind": name, "items": .list(item, countMax: limits.recommendationItemsMax),
                    "builtAt": name.optional.saying("The cursor the set was built at."),
                ]), countMax: countMax
            ).optional,
            "controls": .list(
                .request([
                    "kind": name, "id": name, "parameters": parameters.optional,
                    "delivery": delivery.optional,
                ]), countMax: countMax
            ).optional,
            "delivery": .list(delivery, countMax: limits.deliveriesMax).optional,
        ]
    }

    /// What a client registers.
    var registration: Schema {
        .request(["platform": name] + registrationMembers(attributes: attributes))
            .named("Registration")
    }

    /// Members to be replaced (RFC 7396); those that are `null` are removed.
    var registrationPatch: Schema {
        let attributes = Schema.map(
            .any([.scalar.orNull, .list(.scalar, countMax: limits.listValuesMax)]))
        return .request(
            ["platform": name.optional] + registrationMembers(attributes: attributes)
        ).named("RegistrationPatch")
    }

    /// What a client did.
    var acknowledgement: Schema {
        let timeline: Schema.Members = ["kind": name, "parameters": parameters.optional]
        let measured: Schema.Members = [
            "ms": Schema.number.optional.saying("How long the rebuild took; not negative.")
        ]
        let failed: Schema.Members = ["reason": Schema.text.optional]
        return .request([
            "cursor": .text.saying("Everything up to here is applied."),
            "rebuilt": .list(.request(timeline + measured), countMax: limits.clientKeysMax)
                .optional,
            "failed": .list(.request(timeline + failed), countMax: limits.clientKeysMax).optional,
            "recommendations": .list(name, countMax: limits.clientKeysMax).optional,
        ]).named("Acknowledgement")
    }

    /// A client token that a backend wants made.
    var tokenOrder: Schema {
        .request([
            "sub": .client, "attributes": attributes.optional,
            "ttl": Schema.any([.integer(1...TokenOrder.ttlMax), .text]).optional
                .saying("Seconds, or a text such as `1h`; an hour unless it is said."),
        ]).named("TokenOrder")
    }
}

extension Schema {
    /// An app's bundle id.
    static let app = identifier.saying("The app's bundle id.")
    /// A client id.
    static let client = identifier.saying("The id that the client picked.")

    private static let identifier = text(
        matching: "^[A-Za-z0-9._~-]{1,\(Identifier.bytesMax)}$")
}
