extension ClientRegistration {
    /// Returns a document that ``read(_:limits:)`` reads as the same registration.
    ///
    /// - Parameter maskingTokens: Whether push tokens are cut to their first characters, as in
    ///   every response; the store keeps them complete.
    public func json(maskingTokens: Bool) -> JSONValue {
        var object = JSONObject()
        object.reserveCapacity(9)
        object["platform"] = .string(platform)
        if let osVersion { object["osVersion"] = .string(osVersion.description) }
        if !attributes.isEmpty { object["attributes"] = attributesJSON(attributes) }
        object["widgets"] = .array(widgets.map(\.json))
        object["recommendations"] = .array(recommendations.map(\.json))
        object["controls"] = .array(controls.map { $0.json(maskingTokens: maskingTokens) })
        object["delivery"] = .array(delivery.map { $0.json(maskingTokens: maskingTokens) })
        // Without them the document, and so its digest, is as before there were any.
        if !activities.isEmpty {
            object["activities"] = .array(
                activities.map { $0.json(maskingTokens: maskingTokens) })
        }
        if !activityStarts.isEmpty {
            object["activityStarts"] = .array(
                activityStarts.map { $0.json(maskingTokens: maskingTokens) })
        }
        return .object(object)
    }
}

extension ConfiguredWidget {
    /// The widget as JSON.
    public var json: JSONValue {
        [
            "kind": .string(kind), "family": .string(family),
            "parameters": parametersObject(parameters), "count": .integer(Int64(count)),
        ]
    }
}

extension RecommendationSet {
    /// The set as JSON.
    public var json: JSONValue {
        var object: JSONObject = [
            "kind": .string(kind),
            "items": .array(
                items.map {
                    [
                        "parameters": parametersObject($0.parameters),
                        "description": .string($0.description),
                    ]
                }),
        ]
        if let builtAt { object["builtAt"] = .string(builtAt) }
        return .object(object)
    }
}

extension PlacedControl {
    package func json(maskingTokens: Bool) -> JSONValue {
        var object: JSONObject = [
            "kind": .string(kind), "id": .string(id), "parameters": parametersObject(parameters),
        ]
        if let delivery { object["delivery"] = delivery.json(maskingTokens: maskingTokens) }
        return .object(object)
    }
}

extension RegisteredActivity {
    package func json(maskingTokens: Bool) -> JSONValue {
        var object: JSONObject = [
            "type": .string(type), "id": .string(id), "attributes": parametersObject(attributes),
        ]
        if let channel { object["channel"] = .string(channel) }
        if let delivery { object["delivery"] = delivery.json(maskingTokens: maskingTokens) }
        return .object(object)
    }
}

extension ActivityStartAddress {
    package func json(maskingTokens: Bool) -> JSONValue {
        ["type": .string(type), "delivery": delivery.json(maskingTokens: maskingTokens)]
    }
}

extension DeliveryAddress {
    package func json(maskingTokens: Bool) -> JSONValue {
        switch self {
        case .stream:
            return ["type": "stream"]
        case .webhook(let url):
            return ["type": "webhook", "url": .string(url)]
        case .fcm(let token):
            let shown = maskingTokens ? token.prefix(8) + "…" : token[...]
            return ["type": "fcm", "token": .string(String(shown))]
        case .webPush(let push):
            if maskingTokens {
                // The host says which service it is, the rest of the URL whom it reaches.
                let scheme = "https://"
                let host = push.endpoint.dropFirst(scheme.count).prefix { !"/?#\\".contains($0) }
                return ["type": "webpush", "endpoint": .string("\(scheme)\(host)/…")]
            }
            return [
                "type": "webpush", "endpoint": .string(push.endpoint),
                "keys": ["p256dh": .string(push.p256dh), "auth": .string(push.auth)],
            ]
        case .apns(let address):
            let token = maskingTokens ? address.token.prefix(8) + "…" : address.token[...]
            var object: JSONObject = ["type": "apns", "pushType": .string(address.pushType)]
            // A channel is no secret: whoever listens to it knows it.
            if let channel = address.channel {
                object["channel"] = .string(channel)
            } else {
                object["token"] = .string(String(token))
            }
            object["environment"] = .string(address.environment)
            if let topic = address.topic { object["topic"] = .string(topic) }
            return .object(object)
        }
    }
}

/// Returns parameter values as a JSON object with sorted names.
package func parametersObject(_ parameters: [String: ParameterValue]) -> JSONValue {
    var object = JSONObject()
    for (name, value) in parameters.sorted(by: { $0.key < $1.key }) { object[name] = value.json }
    return .object(object)
}
