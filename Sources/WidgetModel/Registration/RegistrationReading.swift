extension ClientRegistration {
    /// A parsed registration with its warnings.
    public struct Reading: Sendable {
        /// The accepted registration.
        public let registration: ClientRegistration
        /// The unknown members and delivery types that were ignored.
        public let warnings: Faults
    }

    /// Reads a registration document.
    ///
    /// Unknown members and delivery types are warnings, and the rest is accepted, so that old and
    /// new versions of an app can share a gateway.
    ///
    /// - Throws: ``Faults`` with every fault and its path.
    public static func read(_ value: JSONValue, limits: Limits) throws(Faults) -> Reading {
        var notes = ReadingNotes(limits: limits)
        guard var reader = MemberReader(value, at: "", &notes.faults) else { throw notes.faults }
        let textMax = limits.stringBytesMax
        let platform = reader.string("platform", required: true, limit: textMax, &notes.faults)
        var osVersion: OSVersion?
        if let text = reader.string("osVersion", limit: textMax, &notes.faults) {
            osVersion = OSVersion(text)
            if osVersion == nil { notes.faults.add("osVersion", "must be a version such as 26.1") }
        }
        let attributes =
            reader.value("attributes").map {
                readAttributes($0, at: "attributes", limits: limits, &notes.faults)
            } ?? [:]
        func elements<Element>(
            _ name: String, countMax: Int,
            _ read: (JSONValue, String, inout ReadingNotes) -> Element?
        ) -> [Element] {
            (reader.array(name, countMax: countMax, &notes.faults) ?? []).enumerated().compactMap {
                read($1, name + "[" + String($0) + "]", &notes)
            }
        }
        let (countMax, activitiesMax) =
            (limits.registrationWidgetsMax, limits.registrationActivitiesMax)
        let widgets = elements("widgets", countMax: countMax) {
            ConfiguredWidget($0, at: $1, &$2)
        }
        let recommendations = elements("recommendations", countMax: countMax) {
            RecommendationSet($0, at: $1, &$2)
        }
        let controls = elements("controls", countMax: countMax) { PlacedControl($0, at: $1, &$2) }
        let delivery = elements("delivery", countMax: limits.deliveriesMax) {
            DeliveryAddress($0, at: $1, &$2)
        }
        let activities = elements("activities", countMax: activitiesMax) {
            RegisteredActivity($0, at: $1, &$2)
        }
        let activityStarts = elements("activityStarts", countMax: activitiesMax) {
            ActivityStartAddress($0, at: $1, &$2)
        }
        var kinds: Set<String> = []
        for (index, set) in recommendations.enumerated()
        where !kinds.insert(set.kind).inserted {
            notes.faults.add("recommendations[\(index)].kind", "has two sets")
        }
        Self.check(activities, activityStarts, &notes.faults)
        let addresses = Self.pushAddresses(of: delivery, controls, activities, activityStarts)
        if addresses.count > limits.pushAddressesMax {
            notes.faults.add(
                "delivery",
                "has \(addresses.count) different addresses, with those of controls and "
                    + "activities; at most \(limits.pushAddressesMax) are allowed")
        }
        reader.warnUnknown(&notes.warnings)
        guard notes.faults.isEmpty, let platform else { throw notes.faults }
        let registration = ClientRegistration(
            platform: platform, osVersion: osVersion, attributes: attributes,
            widgets: Self.counted(widgets), recommendations: recommendations, controls: controls,
            delivery: delivery, activities: activities, activityStarts: activityStarts)
        return Reading(registration: registration, warnings: notes.warnings)
    }

    /// The addresses that pushes go to: the client's own and those of its controls and activities.
    public var pushAddresses: Set<DeliveryAddress> {
        Self.pushAddresses(of: delivery, controls, activities, activityStarts)
    }

    private static func pushAddresses(
        of delivery: [DeliveryAddress], _ controls: [PlacedControl],
        _ activities: [RegisteredActivity], _ activityStarts: [ActivityStartAddress]
    ) -> Set<DeliveryAddress> {
        var addresses = Set(delivery)
        for control in controls {
            if let address = control.delivery { addresses.insert(address) }
        }
        for activity in activities {
            if let address = activity.delivery { addresses.insert(address) }
        }
        for start in activityStarts { addresses.insert(start.delivery) }
        addresses.remove(.stream)
        return addresses
    }

    /// Rejects activities with one id, several starts of one type, and a token that is used twice.
    private static func check(
        _ activities: [RegisteredActivity], _ activityStarts: [ActivityStartAddress],
        _ faults: inout Faults
    ) {
        var (ids, types, addresses) = (Set<String>(), Set<String>(), Set<DeliveryAddress>())
        func check(_ address: DeliveryAddress, at place: String) {
            if !addresses.insert(address).inserted {
                faults.add("\(place).delivery", "is the address of another activity or type")
            }
        }
        for (index, activity) in activities.enumerated() {
            let place = "activities[\(index)]"
            if !ids.insert(activity.id).inserted { faults.add("\(place).id", "is stated twice") }
            if let address = activity.delivery { check(address, at: place) }
        }
        for (index, start) in activityStarts.enumerated() {
            let place = "activityStarts[\(index)]"
            if !types.insert(start.type).inserted {
                faults.add("\(place).type", "has two addresses")
            }
            check(start.delivery, at: place)
        }
    }

    /// Merges identical widgets, adding up their counts.
    private static func counted(_ widgets: [ConfiguredWidget]) -> [ConfiguredWidget] {
        var result: [ConfiguredWidget] = []
        result.reserveCapacity(widgets.count)
        // A few widgets are compared faster than hashed; for more, a dictionary avoids quadratic
        // time.
        let isShort = widgets.count <= 8
        var places: [ConfiguredWidget: Int] = [:]
        for widget in widgets {
            var identity = widget
            identity.count = 1
            let known =
                isShort ? result.firstIndex { $0.isSame(as: widget) } : places[identity]
            if let known {
                let sum = result[known].count.addingReportingOverflow(widget.count)
                result[known].count = sum.overflow ? Int.max : sum.partialValue
            } else {
                if !isShort { places[identity] = result.count }
                result.append(widget)
            }
        }
        return result
    }
}

extension MemberReader {
    /// Records a warning for every member that was not requested.
    func warnUnknown(_ warnings: inout Faults) {
        for name in unknownNames {
            warnings.add(path(name.forError), "is unknown to this gateway and was ignored")
        }
    }

    /// Reads an object of parameter values.
    mutating func parameters(
        _ name: String, limits: Limits, _ faults: inout Faults
    ) -> [String: ParameterValue] {
        guard let value = value(name) else { return [:] }
        var place: String { path(name) }
        let members = Self.members(of: value, at: place, countMax: limits.attributesMax, &faults)
        var parameters: [String: ParameterValue] = [:]
        parameters.reserveCapacity(members.count)
        for member in members {
            var memberPlace: String { "\(place).\(member.name.forError)" }
            if let reason = member.name.isUnfit(limit: limits.stringBytesMax) {
                faults.add(memberPlace, "the name \(reason)")
            } else if let value = ParameterValue(
                member.value, at: memberPlace, limits: limits, &faults)
            {
                parameters[member.name] = value
            }
        }
        return parameters
    }
}

/// The limits of a document, and what was found in it so far.
struct ReadingNotes {
    let limits: Limits
    var faults = Faults()
    var warnings = Faults()

    var textMax: Int { limits.stringBytesMax }
}

extension ConfiguredWidget {
    /// Returns whether both are equal apart from their counts.
    fileprivate func isSame(as other: ConfiguredWidget) -> Bool {
        kind == other.kind && family == other.family && parameters == other.parameters
    }

    init?(_ value: JSONValue, at place: String, _ notes: inout ReadingNotes) {
        guard var reader = MemberReader(value, at: place, &notes.faults) else { return nil }
        let kind = reader.string("kind", required: true, limit: notes.textMax, &notes.faults)
        let family = reader.string("family", required: true, limit: notes.textMax, &notes.faults)
        let parameters = reader.parameters("parameters", limits: notes.limits, &notes.faults)
        var count = 1
        if let value = reader.value("count") {
            if let number = value.integerValue.flatMap({ Int(exactly: $0) }), number >= 1 {
                count = number
            } else {
                notes.faults.add(reader.path("count"), "must be an integer of at least 1")
            }
        }
        reader.warnUnknown(&notes.warnings)
        guard let kind, let family else { return nil }
        self.init(kind: kind, family: family, parameters: parameters, count: count)
    }
}

extension RecommendationSet {
    init?(_ value: JSONValue, at place: String, _ notes: inout ReadingNotes) {
        guard var reader = MemberReader(value, at: place, &notes.faults) else { return nil }
        let kind = reader.string("kind", required: true, limit: notes.textMax, &notes.faults)
        let builtAt = reader.string("builtAt", limit: notes.textMax, &notes.faults)
        if reader.object["items"] == nil {
            notes.faults.add(reader.path("items"), "is required; an empty set is written []")
        }
        var items: [Item] = []
        let countMax = notes.limits.recommendationItemsMax
        let elements = reader.array("items", countMax: countMax, &notes.faults) ?? []
        for (index, element) in elements.enumerated() {
            let place = "\(reader.path("items"))[\(index)]"
            guard var members = MemberReader(element, at: place, &notes.faults) else { continue }
            let parameters = members.parameters("parameters", limits: notes.limits, &notes.faults)
            let described = members.value("description")
            // A missing description is written as an empty one, which must be readable again.
            let description =
                described == ""
                ? nil
                : described.flatMap {
                    MemberReader.string(
                        $0, at: members.path("description"), limit: notes.textMax, &notes.faults)
                }
            members.warnUnknown(&notes.warnings)
            items.append(Item(parameters: parameters, description: description ?? ""))
        }
        reader.warnUnknown(&notes.warnings)
        guard let kind else { return nil }
        self.init(kind: kind, items: items, builtAt: builtAt)
    }
}

extension PlacedControl {
    init?(_ value: JSONValue, at place: String, _ notes: inout ReadingNotes) {
        guard var reader = MemberReader(value, at: place, &notes.faults) else { return nil }
        let kind = reader.string("kind", required: true, limit: notes.textMax, &notes.faults)
        let id = reader.string("id", required: true, limit: notes.textMax, &notes.faults)
        let parameters = reader.parameters("parameters", limits: notes.limits, &notes.faults)
        let delivery = reader.value("delivery").flatMap {
            DeliveryAddress($0, at: reader.path("delivery"), &notes)
        }
        reader.warnUnknown(&notes.warnings)
        guard let kind, let id else { return nil }
        self.init(kind: kind, id: id, parameters: parameters, delivery: delivery)
    }
}

extension RegisteredActivity {
    init?(_ value: JSONValue, at place: String, _ notes: inout ReadingNotes) {
        guard var reader = MemberReader(value, at: place, &notes.faults) else { return nil }
        let type = reader.string("type", required: true, limit: notes.textMax, &notes.faults)
        let id = reader.string("id", required: true, limit: notes.textMax, &notes.faults)
        let attributes = reader.parameters("attributes", limits: notes.limits, &notes.faults)
        let bytes = parametersObject(attributes).serialized.count
        let bytesMax = notes.limits.activityBytesMax
        if bytes > bytesMax {
            notes.faults.add(
                reader.path("attributes"),
                "has \(bytes) bytes; at most \(bytesMax) are allowed")
        }
        let channel = reader.string("channel", limit: notes.textMax, &notes.faults)
        let delivery = reader.value("delivery").flatMap {
            DeliveryAddress($0, at: reader.path("delivery"), isOfActivity: true, &notes)
        }
        reader.warnUnknown(&notes.warnings)
        guard let type, let id else { return nil }
        self.init(
            type: type, id: id, attributes: attributes, channel: channel, delivery: delivery)
    }
}

extension ActivityStartAddress {
    init?(_ value: JSONValue, at place: String, _ notes: inout ReadingNotes) {
        guard var reader = MemberReader(value, at: place, &notes.faults) else { return nil }
        let type = reader.string("type", required: true, limit: notes.textMax, &notes.faults)
        let delivery = reader.required("delivery", &notes.faults).flatMap {
            DeliveryAddress($0, at: reader.path("delivery"), isOfActivity: true, &notes)
        }
        reader.warnUnknown(&notes.warnings)
        if case .apns(let address)? = delivery, address.channel != nil {
            notes.faults.add(reader.path("delivery.channel"), "cannot start an activity")
        }
        guard let type, let delivery else { return nil }
        self.init(type: type, delivery: delivery)
    }
}

extension DeliveryAddress {
    /// The limit of a push token, which is opaque and of unspecified length; it only prevents
    /// abuse.
    static let tokenBytesMax = 1024
    /// The limit of a channel's id, whose length is not specified either.
    package static let channelBytesMax = 256
    static let urlBytesMax = 2048

    /// - Parameter isOfActivity: Whether the address is one of a Live Activity, or of its type.
    init?(
        _ value: JSONValue, at place: String, isOfActivity: Bool = false,
        _ notes: inout ReadingNotes
    ) {
        guard var reader = MemberReader(value, at: place, &notes.faults),
            let type = reader.string("type", required: true, limit: notes.textMax, &notes.faults)
        else { return nil }
        switch type {
        case "stream":
            self = .stream
        case "webhook":
            let url = reader.string("url", required: true, limit: Self.urlBytesMax, &notes.faults)
            guard let url else { return nil }
            guard url.hasPrefix("https://") else {
                notes.faults.add(reader.path("url"), "must be an https URL")
                return nil
            }
            self = .webhook(url: url)
        case "apns":
            guard let address = Self.apns(&reader, notes.limits, &notes.faults) else { return nil }
            self = .apns(address)
        case "fcm":
            let token = reader.string(
                "token", required: true, limit: Self.tokenBytesMax, &notes.faults)
            guard let token else { return nil }
            self = .fcm(token: token)
        case "webpush":
            guard let address = Self.webPush(&reader, &notes) else { return nil }
            self = .webPush(address)
        default:
            notes.warnings.add(
                reader.path("type"), "is not a delivery type of this gateway and was ignored")
            return nil
        }
        reader.warnUnknown(&notes.warnings)
        guard isOfActivity != (channel == .liveactivity) else { return }
        notes.faults.add(
            place,
            isOfActivity
                ? "must have the type apns and the push type liveactivity"
                : "has the push type liveactivity, which belongs to an activity")
        return nil
    }

    private static func apns(
        _ reader: inout MemberReader, _ limits: Limits, _ faults: inout Faults
    ) -> APNsAddress? {
        let pushTypes = APNsPushType.allCases.map(\.rawValue)
        let environments = ["production", "sandbox"]
        let textMax = limits.stringBytesMax
        let pushType = reader.string("pushType", required: true, limit: textMax, &faults)
        let isOfActivity = pushType == APNsPushType.liveactivity.rawValue
        let channel = isOfActivity ? reader.value("channel") : nil
        let token = reader.string(
            "token", required: channel == nil, limit: Self.tokenBytesMax, &faults)
        let environment = reader.string("environment", limit: textMax, &faults) ?? "production"
        let topic = reader.string("topic", limit: textMax, &faults)
        if let pushType, !pushTypes.contains(pushType) {
            faults.add(
                reader.path("pushType"), "must be one of \(pushTypes.joined(separator: ", "))")
        }
        if !environments.contains(environment) {
            faults.add(
                reader.path("environment"),
                "must be one of \(environments.joined(separator: ", "))")
        }
        if let token,
            !token.utf8.count.isMultiple(of: 2)
                || !token.allSatisfy({ $0.isASCII && $0.isHexDigit })
        {
            faults.add(reader.path("token"), "must be the push token in hexadecimal")
        }
        if let channel, token != nil || !Self.isChannel(channel) {
            faults.add(
                reader.path("channel"),
                "must be the id of a broadcast channel in base64, in place of the token")
        }
        guard let pushType, let token = token ?? channel.map({ _ in "" }) else { return nil }
        return APNsAddress(
            pushType: pushType, token: token, environment: environment, topic: topic,
            channel: channel?.stringValue)
    }

    private static func webPush(
        _ reader: inout MemberReader, _ notes: inout ReadingNotes
    ) -> WebPushAddress? {
        let endpoint = reader.string(
            "endpoint", required: true, limit: Self.urlBytesMax, &notes.faults)
        if let endpoint, !endpoint.hasPrefix("https://") {
            notes.faults.add(reader.path("endpoint"), "must be an https URL")
        }
        // Null for most browsers, which say nothing by it.
        _ = reader.value("expirationTime")
        guard let value = reader.required("keys", &notes.faults),
            var keys = MemberReader(value, at: reader.path("keys"), &notes.faults)
        else { return nil }
        func bytes(_ name: String, _ isFit: ([UInt8]) -> Bool, _ reason: String) -> String? {
            let text = keys.string(name, required: true, limit: notes.textMax, &notes.faults)
            guard let text else { return nil }
            if Base64.url.decode(text).map(isFit) != true {
                notes.faults.add(keys.path(name), reason)
            }
            return text
        }
        let p256dh = bytes(
            "p256dh", { $0.count == 65 && $0.first == 4 },
            "must be an uncompressed P-256 key in base64url without padding")
        let auth = bytes(
            "auth", { $0.count == 16 }, "must be 16 bytes in base64url without padding")
        keys.warnUnknown(&notes.warnings)
        guard let endpoint, let p256dh, let auth else { return nil }
        return WebPushAddress(endpoint: endpoint, p256dh: p256dh, auth: auth)
    }

    private static func isChannel(_ value: JSONValue) -> Bool {
        guard let id = value.stringValue, (1...channelBytesMax).contains(id.utf8.count) else {
            return false
        }
        return Base64.standard.decode(id) != nil
    }
}
