import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct RegistrationDigestTests {
    private static let document: JSONValue = [
        "platform": "iOS", "osVersion": "26.1",
        "attributes": ["theme": ["dark", "blue"], "units": "metric"],
        "widgets": [
            ["kind": "k", "family": "systemSmall", "parameters": ["a": "1", "b": ["2", "3"]]],
            ["kind": "l", "family": "systemLarge", "count": 2],
        ],
        "recommendations": [
            ["kind": "k", "items": [], "builtAt": "x"], ["kind": "l", "items": []],
        ],
        "controls": [["kind": "c", "id": "1"], ["kind": "c", "id": "2"]],
        "delivery": [["type": "stream"], ["type": "apns", "pushType": "widgets", "token": "ab"]],
    ]

    private static func digest(_ document: JSONValue) throws -> String {
        let registration = try ClientRegistration.read(document, limits: Limits()).registration
        return RegistrationDigest.text(
            of: registration, ClientAttributes(own: registration.attributes))
    }

    private static func digest(_ member: String, _ value: JSONValue) throws -> String {
        var object = document.objectValue ?? JSONObject()
        object[member] = value
        return try digest(.object(object))
    }

    @Test func `neither order nor defaults make a difference`() throws {
        func shuffled(_ value: JSONValue, in member: String?) -> JSONValue {
            switch value {
            case .object(let object):
                var reversed = JSONObject()
                for member in object.members.reversed() {
                    reversed[member.name] = shuffled(member.value, in: member.name)
                }
                return .object(reversed)
            // The order of addresses matters, as it is their preference.
            case .array(let elements) where member != "delivery" && member != "b":
                return .array(elements.reversed().map { shuffled($0, in: nil) })
            default: return value
            }
        }
        let digest = try Self.digest(Self.document)
        #expect(try Self.digest(shuffled(Self.document, in: nil)) == digest)
        let stated: JSONValue = [
            [
                "kind": "k", "family": "systemSmall", "count": 1,
                "parameters": ["a": "1", "b": ["2", "3"]],
            ],
            ["kind": "l", "family": "systemLarge"], ["kind": "l", "family": "systemLarge"],
        ]
        #expect(try Self.digest("widgets", stated) == digest)
        let delivery: JSONValue = [
            ["type": "stream"],
            ["type": "apns", "pushType": "widgets", "token": "ab", "environment": "production"],
        ]
        #expect(try Self.digest("delivery", delivery) == digest)
        #expect(digest.utf8.count <= 15)
    }

    @Test func `where sets were built and what tokens vouch for make none`() throws {
        let sets: JSONValue = [["kind": "k", "items": []], ["kind": "l", "items": []]]
        #expect(try Self.digest("recommendations", sets) == Self.digest(Self.document))
        let registration = ClientRegistration(platform: "iOS")
        func digest(_ attributes: ClientAttributes) -> String {
            RegistrationDigest.text(of: registration, attributes)
        }
        #expect(
            digest(ClientAttributes(token: ["a": ["1"]], unattributed: ["b": ["2"]]))
                == digest(ClientAttributes()))
        #expect(
            digest(ClientAttributes(backend: ["a": ["1"]]))
                == digest(ClientAttributes(own: ["a": ["1"]])))
        #expect(digest(ClientAttributes(backend: ["a": ["1"]])) != digest(ClientAttributes()))
    }

    /// A client that registered before there were activities must not have to register again.
    @Test func `without activities the digest is as it was before there were any`() throws {
        #expect(try Self.digest(Self.document) == "jrmm2h9se0om")
        for member in ["activities", "activityStarts"] {
            #expect(try Self.digest(member, []) == "jrmm2h9se0om")
        }
    }

    @Test func `the order of activities makes no difference, their content does`() throws {
        func activity(_ id: String, _ token: String = "ab") -> JSONValue {
            [
                "type": "A", "id": .string(id), "attributes": ["a": "1"],
                "delivery": [
                    "type": "apns", "pushType": "liveactivity", "token": .string(token + id),
                ],
            ]
        }
        func start(_ type: String, _ token: String) -> JSONValue {
            [
                "type": .string(type),
                "delivery": ["type": "apns", "pushType": "liveactivity", "token": .string(token)],
            ]
        }
        let digest = try Self.digest("activities", [activity("01"), activity("02")])
        #expect(try Self.digest("activities", [activity("02"), activity("01")]) == digest)
        #expect(try Self.digest("activities", [activity("01"), activity("02", "cd")]) != digest)
        #expect(try digest != Self.digest(Self.document))
        let starts = try Self.digest("activityStarts", [start("A", "01"), start("B", "02")])
        #expect(
            try Self.digest("activityStarts", [start("B", "02"), start("A", "01")]) == starts)
        #expect(
            try Self.digest("activityStarts", [start("B", "01"), start("A", "02")]) != starts)
    }

    @Test func `whatever else is stated makes one`() throws {
        var digests = Set([try Self.digest(Self.document)])
        let others: KeyValuePairs<String, JSONValue> = [
            "platform": "watchOS", "osVersion": "26.2", "attributes": ["theme": "dark"],
            "widgets": [["kind": "k", "family": "systemSmall"]],
            "recommendations": [["kind": "k", "items": []]], "controls": [],
            "delivery": [
                ["type": "apns", "pushType": "widgets", "token": "ab"], ["type": "stream"],
            ],
        ]
        for (member, value) in others { digests.insert(try Self.digest(member, value)) }
        digests.insert(
            try Self.digest(
                "recommendations",
                [
                    ["kind": "k", "items": [["parameters": ["a": "1"], "description": "One"]]],
                    ["kind": "l", "items": []],
                ]))
        #expect(digests.count == others.count + 2)
    }
}

@Suite struct RegistrationTermsTests {
    private func record(_ attributes: [String: [String]]) -> ClientRecord {
        ClientRecord(
            client: "phone", registration: ClientRegistration(platform: "iOS"),
            attributes: ClientAttributes(backend: attributes))
    }

    @Test func `without a registration nothing is allowed`() {
        let terms = RegistrationTerms(vouched: [:])
        #expect(throws: RegistrationTerms.Rejection.notRegistered) { try terms.accept(nil) }
    }

    @Test func `a token may vouch for what is registered, in any order, and for more`() throws {
        let terms = RegistrationTerms(vouched: ["account": ["2", "1"], "theme": ["dark"]])
        let record = record(["account": ["1", "2"], "household": ["9"]])
        #expect(try terms.accept(record) === record)
    }

    @Test func `a token that vouches for other values is refused`() {
        let terms = RegistrationTerms(vouched: ["account": ["1"]])
        #expect(
            throws: RegistrationTerms.Rejection.attributes(.tokenContradicts(attribute: "account"))
        ) {
            try terms.accept(record(["account": ["2"]]))
        }
    }
}
