import Testing

@testable import WidgetModel

@Suite struct RegistrationTests {
    static let document: JSONValue = [
        "platform": "iOS", "osVersion": "26.1",
        "attributes": ["account": 42, "theme": ["a", "b"]],
        "widgets": [
            [
                "kind": "k", "family": "systemSmall",
                "parameters": ["a": "1", "b": nil, "c": [1, 2]],
            ]
        ],
        "recommendations": [
            [
                "kind": "k", "items": [["parameters": ["a": "1"], "description": "One"]],
                "builtAt": "x",
            ],
            ["kind": "l", "items": []],
        ],
        "controls": [["kind": "c", "id": "7", "parameters": ["a": true]]],
        "delivery": [
            ["type": "stream"], ["type": "webhook", "url": "https://example.org/hook"],
            ["type": "apns", "pushType": "widgets", "token": "00ffAA", "topic": "t"],
        ],
    ]

    static func read(
        _ value: JSONValue, limits: Limits = Limits()
    ) throws(Faults) -> ClientRegistration.Reading {
        try ClientRegistration.read(value, limits: limits)
    }

    static func faults(_ changes: JSONObject, limits: Limits = Limits()) -> [String] {
        faultsFound {
            _ = try read(document.merging(patch: .object(changes)), limits: limits)
        }.map(\.place)
    }

    @Test func `a registration is read as written and reads back the same`() throws {
        let reading = try Self.read(Self.document)
        let registration = reading.registration
        #expect(reading.warnings.isEmpty)
        #expect(registration.attributes == ["account": ["42"], "theme": ["a", "b"]])
        #expect(
            registration.widgets[0].parameters == [
                "a": .single("1"), "b": .unset, "c": .list(["1", "2"]),
            ])
        #expect(registration.controls[0].parameters == ["a": .single("true")])
        #expect(registration.recommendations.map(\.items.count) == [1, 0])
        #expect(registration.delivery.count == 3)
        #expect(try Self.read(registration.json(maskingTokens: false)).registration == registration)
    }

    @Test(
        arguments: [["parameters": [:]], ["description": ""], ["description": nil]] as [JSONValue])
    func `a recommended item without a description reads back the same`(item: JSONValue) throws {
        let registration = try Self.read(
            ["platform": "iOS", "recommendations": [["kind": "k", "items": [item]]]]
        ).registration
        #expect(registration.recommendations.first?.items.map(\.description) == [""])
        #expect(try Self.read(registration.json(maskingTokens: false)).registration == registration)
    }

    static func address(_ token: String = "00ff", type: String = "liveactivity") -> JSONValue {
        ["type": "apns", "pushType": .string(type), "token": .string(token)]
    }

    static let activity: JSONValue = [
        "type": "Battle", "id": "7",
        "attributes": ["hero": "panda", "level": nil, "items": [1, 2]],
        "channel": "bWF0Y2g=", "delivery": address(),
    ]

    @Test func `activities are read as written, without them nothing is written`() throws {
        let document = Self.document.merging(
            patch: [
                "activities": [Self.activity, ["type": "Battle", "id": "8"]],
                "activityStarts": [["type": "Battle", "delivery": Self.address("01")]],
            ])
        let reading = try Self.read(document)
        let registration = reading.registration
        #expect(reading.warnings.isEmpty)
        let address = DeliveryAddress.APNsAddress(pushType: "liveactivity", token: "00ff")
        #expect(
            registration.activities == [
                RegisteredActivity(
                    type: "Battle", id: "7",
                    attributes: [
                        "hero": .single("panda"), "level": .unset, "items": .list(["1", "2"]),
                    ], channel: "bWF0Y2g=", delivery: .apns(address)),
                RegisteredActivity(type: "Battle", id: "8"),
            ])
        #expect(registration.activityStarts.map(\.type) == ["Battle"])
        #expect(registration.delivery.map(\.channel) == [.stream, .webhook, .widgets])
        #expect(registration.activities[0].delivery?.channel == .liveactivity)
        #expect(registration.pushAddresses.count == 4)
        #expect(try Self.read(registration.json(maskingTokens: false)).registration == registration)
        let before = try Self.read(Self.document).registration.json(maskingTokens: false)
        #expect(
            before.objectValue?.members.map(\.name) == [
                "platform", "osVersion", "attributes", "widgets", "recommendations", "controls",
                "delivery",
            ])
    }

    @Test func `answers mask push tokens`() throws {
        let token = String(repeating: "ab", count: 40)
        let apns: JSONValue = ["type": "apns", "pushType": "controls", "token": .string(token)]
        let document = Self.document.merging(
            patch: [
                "delivery": .array([apns]),
                "controls": [["kind": "c", "id": "7", "delivery": apns]],
            ])
        let registration = try Self.read(document).registration
        #expect(!registration.json(maskingTokens: true).text.contains(token))
        #expect(registration.json(maskingTokens: false).text.contains(token))
    }

    @Test func `identical widgets are one with their counts added`() throws {
        func widget(_ value: JSONValue, _ count: JSONValue) -> JSONValue {
            ["kind": "k", "family": "f", "parameters": ["a": value], "count": count]
        }
        let widgets = try Self.read(
            Self.document.merging(
                patch: [
                    "widgets": .array([
                        widget("1", nil), widget("2", 3), widget("1", 2), widget(1, 1),
                        widget("é", 1), widget("e\u{301}", 1), widget(["1"], 1),
                    ])
                ])
        ).registration.widgets
        #expect(widgets.map(\.count) == [4, 3, 1, 1, 1])
        let many = try Self.read(
            Self.document.merging(
                patch: [
                    "widgets": .array([widget("1", .integer(.max)), widget("1", .integer(.max))])
                ])
        ).registration.widgets
        #expect(many.map(\.count) == [Int.max])
    }

    @Test func `what is not known is left out with a warning and the rest is in force`() throws {
        let reading = try Self.read(
            Self.document.merging(
                patch: [
                    "future": 1, "widgets": [["kind": "k", "family": "new", "size": 3]],
                    "delivery": [["type": "pigeon"], ["type": "stream", "speed": 1]],
                    "recommendations": [["kind": "k", "items": [["parameters": [:], "icon": 1]]]],
                ]))
        #expect(
            Set(reading.warnings.list.map(\.place)) == [
                "future", "widgets[0].size", "delivery[0].type", "delivery[1].speed",
                "recommendations[0].items[0].icon",
            ])
        #expect(reading.registration.widgets.count == 1)
        #expect(reading.registration.delivery == [.stream])
    }

    @Test(
        arguments: [
            (["platform": nil], "platform"), (["platform": 1], "platform"),
            (["osVersion": "new"], "osVersion"),
            (["attributes": []], "attributes"), (["attributes": ["a": []]], "attributes.a"),
            (["attributes": ["": "1"]], "attributes."), (["widgets": 1], "widgets"),
            (["widgets": [1]], "widgets[0]"), (["widgets": [["family": "f"]]], "widgets[0].kind"),
            (["widgets": [["kind": "k"]]], "widgets[0].family"),
            (
                ["widgets": [["kind": "k", "family": "f", "parameters": ["a": [:]]]]],
                "widgets[0].parameters.a"
            ),
            (
                ["widgets": [["kind": "k", "family": "f", "parameters": ["a": [nil]]]]],
                "widgets[0].parameters.a[0]"
            ),
            (["recommendations": [["kind": "k"]]], "recommendations[0].items"),
            (
                ["recommendations": [["kind": "k", "items": []], ["kind": "k", "items": []]]],
                "recommendations[1].kind"
            ),
            (["controls": [["kind": "c"]]], "controls[0].id"),
            (["delivery": [["url": "x"]]], "delivery[0].type"),
            (["delivery": [["type": "webhook", "url": "http://x"]]], "delivery[0].url"),
            (
                ["delivery": [["type": "apns", "pushType": "widgets", "token": "xyz"]]],
                "delivery[0].token"
            ),
            (
                ["delivery": [["type": "apns", "pushType": "alert", "token": "00"]]],
                "delivery[0].pushType"
            ),
            (
                [
                    "delivery": [
                        [
                            "type": "apns", "pushType": "widgets", "token": "00",
                            "environment": "test",
                        ]
                    ]
                ],
                "delivery[0].environment"
            ),
            (["activityStarts": [["type": "A"]]], "activityStarts[0].delivery"),
            (
                ["activityStarts": [["type": "A", "delivery": channel]]],
                "activityStarts[0].delivery.channel"
            ),
            (["activityStarts": [["delivery": address()]]], "activityStarts[0].type"),
            (
                ["activityStarts": [start, ["type": "A", "delivery": address("01")]]],
                "activityStarts[1].type"
            ),
            // An address of an activity is of nothing else.
            (["delivery": [["type": "pigeon"], address()]], "delivery[1]"),
            (
                ["controls": [["kind": "c", "id": "7", "delivery": address()]]],
                "controls[0].delivery"
            ),
            (["activities": [activity], "activityStarts": [start]], "activityStarts[0].delivery"),
        ] as [(JSONObject, String)])
    func `a fault is told with its place`(changes: JSONObject, place: String) {
        #expect(Self.faults(changes) == [place])
    }

    static let brokenActivities: [([JSONValue], String)] = [
        ([["id": "7"]], "activities[0].type"), ([["type": "A"]], "activities[0].id"),
        ([["type": "A", "id": "7", "attributes": []]], "activities[0].attributes"),
        ([["type": "A", "id": "7", "attributes": ["": "1"]]], "activities[0].attributes."),
        ([["type": "A", "id": "7", "channel": 1]], "activities[0].channel"),
        ([["type": "A", "id": "7", "delivery": ["type": "stream"]]], "activities[0].delivery"),
        (
            [["type": "A", "id": "7", "delivery": address(type: "widgets")]],
            "activities[0].delivery"
        ),
        ([["type": "A", "id": "7"], ["type": "B", "id": "7"]], "activities[1].id"),
        ([activity, activity.merging(patch: ["id": "8"])], "activities[1].delivery"),
    ]

    @Test(arguments: brokenActivities)
    func `a fault of an activity is told with its place`(activities: [JSONValue], place: String) {
        #expect(Self.faults(["activities": .array(activities)]) == [place])
    }

    static let channel: JSONValue = [
        "type": "apns", "pushType": "liveactivity", "channel": "AAAA",
    ]
    static let start: JSONValue = ["type": "A", "delivery": address()]

    @Test(
        arguments: [
            (["platform": "i\u{0}OS"], "platform"),
            (["attributes": ["a": "4\u{0}2"]], "attributes.a"),
            (["attributes": ["a\u{0}b": "1"]], "attributes.a\u{0}b"),
            (["widgets": [["kind": "k\u{0}", "family": "f"]]], "widgets[0].kind"),
            (["widgets": [["kind": "k", "family": "f\u{0}"]]], "widgets[0].family"),
            (
                ["widgets": [["kind": "k", "family": "f", "parameters": ["a": "p\u{0}"]]]],
                "widgets[0].parameters.a"
            ),
            (["controls": [["kind": "k", "id": "i\u{0}"]]], "controls[0].id"),
            (
                ["recommendations": [["kind": "k", "items": [["description": "d\u{0}"]]]]],
                "recommendations[0].items[0].description"
            ),
            (
                ["delivery": [["type": "apns", "pushType": "widgets", "token": "ab\u{0}d"]]],
                "delivery[0].token"
            ),
            (["delivery": [["type": "webhook", "url": "https://a\u{0}"]]], "delivery[0].url"),
        ] as [(JSONObject, String)])
    func `no text may hold NUL`(changes: JSONObject, place: String) {
        #expect(Self.faults(changes) == [place])
    }

    @Test(arguments: [0, -1, .number(1.5), "2", .number(0x1p64)] as [JSONValue])
    func `a count is a whole number of at least one`(count: JSONValue) {
        let widget: JSONValue = ["kind": "k", "family": "f", "count": count]
        #expect(Self.faults(["widgets": [widget]]) == ["widgets[0].count"])
    }

    @Test func `counts and sizes are bounded`() {
        var limits = Limits()
        limits.registrationWidgetsMax = 1
        limits.listValuesMax = 2
        limits.stringBytesMax = 8
        let document: JSONObject = [
            "osVersion": nil, "delivery": nil, "recommendations": nil, "controls": nil,
            "attributes": nil,
        ]
        func faults(_ widgets: JSONValue) -> [String] {
            var changes = document
            changes["widgets"] = widgets
            return Self.faults(changes, limits: limits)
        }
        func widget(_ value: JSONValue) -> JSONValue {
            ["kind": "k", "family": "f", "parameters": ["a": value]]
        }
        #expect(faults([widget(["1", "2"])]) == [])
        #expect(faults([widget("1"), widget("2")]) == ["widgets"])
        #expect(faults([widget(["1", "2", "3"])]) == ["widgets[0].parameters.a"])
        #expect(faults([widget("123456789")]) == ["widgets[0].parameters.a"])
    }

    @Test func `activities and starts are bounded, each for themselves`() {
        let counts = 1...Limits().registrationActivitiesMax
        var changes: JSONObject = [
            "activities": .array(counts.map { ["type": "A", "id": .string("\($0)")] }),
            "activityStarts": .array(
                counts.map {
                    let token = String(0x1000 + $0, radix: 16)
                    return ["type": .string(token), "delivery": Self.address(token)]
                }),
        ]
        #expect(Self.faults(changes) == [])
        for name in ["activities", "activityStarts"] {
            let elements = changes[name]?.arrayValue ?? []
            changes[name] = .array(elements + elements)
            #expect(Self.faults(changes) == [name])
            changes[name] = .array(elements)
        }
    }

    @Test func `the attributes of an activity are bounded together`() {
        func faults(bytes: Int) -> [String] {
            var attributes: JSONObject = ["last": ""]
            for number in 10..<41 {
                attributes["\(number)"] = .string(String(repeating: "x", count: 250))
            }
            let rest = bytes - JSONValue.object(attributes).serialized.count
            attributes["last"] = .string(String(repeating: "x", count: rest))
            return Self.faults([
                "activities": [["type": "A", "id": "7", "attributes": .object(attributes)]]
            ])
        }
        #expect(faults(bytes: 8_192) == [])
        #expect(faults(bytes: 8_193) == ["activities[0].attributes"])
    }

    @Test func `an activity with an unknown address keeps the rest, a start has none`() throws {
        let unknown: JSONValue = ["type": "pigeon"]
        let reading = try Self.read([
            "platform": "iOS",
            "activities": [["type": "A", "id": "7", "delivery": unknown, "new": 1]],
            "activityStarts": [["type": "A", "delivery": unknown]],
        ])
        #expect(reading.registration.activities == [RegisteredActivity(type: "A", id: "7")])
        #expect(reading.registration.activityStarts.isEmpty)
        #expect(
            reading.warnings.list.map(\.place) == [
                "activities[0].delivery.type", "activities[0].new",
                "activityStarts[0].delivery.type",
            ])
    }

    @Test(arguments: [
        ("26", "26.0"), ("26.1", "26.1.0"), ("11.6.1", "11.6.1"),
    ])
    func `versions that differ in zeros only are equal`(left: String, right: String) {
        #expect(OSVersion(left) != nil && OSVersion(left) == OSVersion(right))
    }

    @Test func `versions compare by number`() throws {
        let versions = try ["9", "11", "11.6", "11.10", "26", "26.1"].map {
            try #require(OSVersion($0))
        }
        #expect(versions.reversed().sorted() == versions)
        for wrong in ["", ".", "26.", "a", "1.2.3.4.5", "-1", "99999999999999999999", "1 "] {
            #expect(OSVersion(wrong) == nil, "\(wrong)")
        }
    }

    @Test(arguments: [
        ("a", true), ("A-z.0_9~", true), (String(repeating: "a", count: 128), true), ("", false),
        (String(repeating: "a", count: 129), false), ("a b", false), ("a/b", false), ("é", false),
        ("a\u{0}", false), ("%41", false),
    ])
    func `identifiers are what may stand in a URL`(text: String, isValid: Bool) {
        #expect(Identifier.isValid(text) == isValid)
    }

    @Test func `the address of a broadcast channel has its id in place of a token`() throws {
        func activities(_ changes: JSONObject) -> JSONValue {
            let address: JSONValue = [
                "type": "apns", "pushType": "liveactivity", "environment": "sandbox",
            ]
            return [
                [
                    "type": "Battle", "id": "7",
                    "delivery": address.merging(patch: .object(changes)),
                ]
            ]
        }
        let document: JSONValue = [
            "platform": "broadcast", "activities": activities(["channel": "bWF0Y2g="]),
        ]
        let registration = try Self.read(document).registration
        #expect(
            registration.activities.map(\.delivery) == [
                .apns(
                    .init(
                        pushType: "liveactivity", token: "", environment: "sandbox",
                        channel: "bWF0Y2g="))
            ])
        #expect(try Self.read(registration.json(maskingTokens: true)).registration == registration)
        let longest = String(repeating: "A", count: 256)
        #expect(Self.faults(["activities": activities(["channel": .string(longest)])]).isEmpty)
        let broken: [JSONObject] = [
            ["channel": "bWF0Y2g"], ["channel": ""], ["channel": 7],
            ["channel": .string(longest + "AAAA")], ["channel": "bWF0Y2g=", "token": "00"],
        ]
        for changes in broken {
            #expect(
                Self.faults(["activities": activities(changes)])
                    == ["activities[0].delivery.channel"])
        }
        let widgets: JSONValue = ["type": "apns", "pushType": "widgets", "channel": "bWF0Y2g="]
        #expect(Self.faults(["delivery": [widgets]]) == ["delivery[0].token"])
    }

    @Test func `a browser's subscription is read, and shown without its secrets`() throws {
        let keys: JSONObject = [
            "p256dh":
                "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
            "auth": "BTBZMqHH6r4Tts7J_aSIgg",
        ]
        func document(
            _ keys: JSONObject, endpoint: String = "https://push.example/a/b"
        ) -> JSONObject {
            let address: JSONValue = [
                "type": "webpush", "endpoint": .string(endpoint), "expirationTime": .null,
                "keys": .object(keys),
            ]
            return ["delivery": [address]]
        }
        var whole = document(keys)
        whole["platform"] = "web"
        let reading = try Self.read(.object(whole))
        #expect(reading.warnings.isEmpty)
        let registration = reading.registration
        #expect(registration.delivery.first?.channel == .webpush)
        #expect(try Self.read(registration.json(maskingTokens: false)).registration == registration)
        let shown = registration.json(maskingTokens: true).objectValue?["delivery"]
        #expect(shown == [["type": "webpush", "endpoint": "https://push.example/…"]])
        for rest in ["?secret=abc", "#secret", ":8443?secret", "//secret", "\\secret"] {
            let push = DeliveryAddress.WebPushAddress(
                endpoint: "https://push.example" + rest, p256dh: "p", auth: "a")
            let shown = DeliveryAddress.webPush(push).json(maskingTokens: true).text
            #expect(shown.contains("https://push.example") && !shown.contains("secret"), "\(rest)")
        }
        var broken = keys
        broken["auth"] = "BTBZMqHH6r4Tts7J_aSIg"
        #expect(Self.faults(document(broken)) == ["delivery[0].keys.auth"])
        broken = keys
        broken["p256dh"] = nil
        #expect(Self.faults(document(broken)) == ["delivery[0].keys.p256dh"])
        #expect(
            Self.faults(document(keys, endpoint: "http://push.example/a"))
                == ["delivery[0].endpoint"])
    }

    @Test func `a token of FCM is read, and shown without its end`() throws {
        let changes: JSONObject = ["delivery": [["type": "fcm", "token": "abcdefghijkl:m-n_o"]]]
        let registration = try Self.read(Self.document.merging(patch: .object(changes)))
            .registration
        #expect(registration.delivery == [.fcm(token: "abcdefghijkl:m-n_o")])
        #expect(try Self.read(registration.json(maskingTokens: false)).registration == registration)
        let shown = registration.json(maskingTokens: true).objectValue?["delivery"]
        #expect(shown == [["type": "fcm", "token": "abcdefgh…"]])
        #expect(Self.faults(["delivery": [["type": "fcm"]]]) == ["delivery[0].token"])
    }

    @Test func `addresses of clients and controls are counted together`() throws {
        func document(_ tokens: Range<Int>) -> JSONObject {
            func address(_ token: Int) -> JSONValue {
                [
                    "type": "apns", "pushType": "widgets",
                    "token": .string(String(0x1000 + token, radix: 16)),
                ]
            }
            return [
                "delivery": [["type": "stream"], address(0)],
                "controls": .array(
                    tokens.map {
                        ["kind": "c", "id": .string("\($0)"), "delivery": address($0)]
                    }),
            ]
        }
        #expect(Self.faults(document(0..<64)).isEmpty)
        #expect(Self.faults(document(1..<65)) == ["delivery"])
        // Controls may share an address.
        var shared = document(0..<64)
        shared["controls"] = .array(
            (0..<200).map { id in
                [
                    "kind": "c", "id": .string("\(id)"),
                    "delivery": ["type": "apns", "pushType": "widgets", "token": "10"],
                ]
            })
        #expect(Self.faults(shared).isEmpty)
    }
}
