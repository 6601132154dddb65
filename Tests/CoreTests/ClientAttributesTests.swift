import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct ClientAttributesTests {
    static func client(
        _ stated: [String: [String]], token: [String: [String]] = [:],
        before: ClientAttributes = ClientAttributes()
    ) throws(ClientAttributes.Rejection) -> ClientAttributes {
        try ClientAttributes(
            statedByClient: stated, token: token, before: before, selfDeclared: ["theme"])
    }

    @Test func `a backend vouches for all it states`() {
        let attributes = ClientAttributes(statedByBackend: ["account": ["42"], "theme": ["dark"]])
        #expect(attributes.backend == ["account": ["42"], "theme": ["dark"]])
        #expect(attributes.inForce == attributes.backend)
    }

    @Test func `a client states what the catalog lists and repeats what is vouched for`() throws {
        let attributes = try Self.client(
            ["theme": ["dark"], "account": ["2", "1", "1"], "team": ["7"]],
            token: ["account": ["1", "2"]], before: ClientAttributes(backend: ["team": ["7"]]))
        #expect(attributes.own == ["theme": ["dark"]])
        #expect(attributes.token == ["account": ["1", "2"]])
        #expect(attributes.backend == ["team": ["7"]])
        #expect(
            attributes.inForce == ["theme": ["dark"], "account": ["1", "2"], "team": ["7"]])
    }

    /// Another account must not be taken for the same one because its name looks alike.
    @Test func `values that look alike contradict each other`() throws {
        let (composed, decomposed) = ("\u{E9}", "e\u{301}")
        let before = try Self.client([:], token: ["account": [composed]])
        let after = try before.presenting(["account": [decomposed]])
        #expect(after.inForce["account"]?.first?.utf8.count == 3)
        #expect(throws: ClientAttributes.Rejection.contradictsToken(attribute: "account")) {
            try Self.client(["account": [composed]], token: ["account": [decomposed]])
        }
        #expect(throws: ClientAttributes.Rejection.tokenContradicts(attribute: "account")) {
            try ClientAttributes(statedByBackend: ["account": [composed]])
                .presenting(["account": [decomposed]])
        }
    }

    /// In the past, an attribute that a token once vouched for stayed as long as the registration.
    @Test func `of tokens only the present one counts`() throws {
        let before = try Self.client([:], token: ["account": ["42"], "team": ["7"]])
        #expect(try Self.client([:], before: before).inForce.isEmpty)
        #expect(try before.presenting([:]).inForce.isEmpty)
        #expect(try before.presenting(["team": ["8"]]).inForce == ["team": ["8"]])
        #expect(throws: ClientAttributes.Rejection.notVouched(attribute: "account")) {
            try Self.client(["account": ["42"]], before: before)
        }
        #expect(throws: ClientAttributes.Rejection.contradictsToken(attribute: "team")) {
            try Self.client(["team": ["7"]], token: ["team": ["8"]], before: before)
        }
    }

    @Test func `what a backend set holds until a backend sets it again`() throws {
        let set = ClientAttributes(statedByBackend: ["account": ["42"]])
        let registered = try Self.client(["theme": ["dark"]], before: set)
        #expect(registered.inForce == ["account": ["42"], "theme": ["dark"]])
        #expect(try registered.presenting(["team": ["7"]]).backend == ["account": ["42"]])
        let again = ClientAttributes(statedByBackend: ["team": ["8"]], before: registered)
        #expect(again.inForce == ["team": ["8"]])
    }

    @Test func `a token contradicts neither the backend nor what the client registered`() throws {
        let before = ClientAttributes(own: ["theme": ["dark"]], backend: ["account": ["1", "2"]])
        #expect(throws: ClientAttributes.Rejection.tokenContradicts(attribute: "account")) {
            try Self.client([:], token: ["account": ["1"]], before: before)
        }
        for name in ["theme", "account"] {
            #expect(throws: ClientAttributes.Rejection.tokenContradicts(attribute: name)) {
                try before.presenting([name: ["other"]])
            }
        }
        #expect(try before.presenting(["account": ["2", "1"]]).backend == before.backend)
        // A client that registers again states its own attributes anew.
        #expect(
            try Self.client([:], token: ["theme": ["light"]], before: before).inForce == [
                "theme": ["light"], "account": ["1", "2"],
            ])
    }

    @Test func `the latest token counts beside what a backend sets, unless it contradicts`() {
        let before = ClientAttributes(
            own: ["theme": ["dark"]], token: ["account": ["42"], "team": ["7"]])
        let set = ClientAttributes(statedByBackend: ["team": ["8"]], before: before)
        #expect(set == ClientAttributes(token: ["account": ["42"]], backend: ["team": ["8"]]))
    }

    @Test func `a backend's patch leaves the attributes that it does not name`() {
        let before = ClientAttributes(
            own: ["theme": ["dark"], "units": ["metric"]], token: ["account": ["42"]],
            backend: ["team": ["7"]], unattributed: ["house": ["9"], "door": ["1"]])
        let patched = ClientAttributes(
            statedByBackend: ["team": ["7"], "theme": ["light"]], naming: ["theme", "door"],
            before: before)
        #expect(
            patched
                == ClientAttributes(
                    own: ["units": ["metric"]], token: ["account": ["42"]],
                    backend: ["team": ["7"], "theme": ["light"]],
                    unattributed: ["house": ["9"]]))
    }

    /// Stores written by older versions do not record who vouched. A backend's attribute must not
    /// be lost, and a client must not be refused for an attribute that its earlier token vouched
    /// for.
    @Test func `what nobody can be named for holds until a token or a backend names it`() throws {
        let before = ClientAttributes(unattributed: ["account": ["42"], "team": ["7"]])
        #expect(try before.presenting([:]) == before)
        let presented = try Self.client([:], token: ["account": ["43"]], before: before)
        #expect(presented.inForce == ["account": ["43"], "team": ["7"]])
        #expect(try presented.presenting([:]).inForce == ["team": ["7"]])
        #expect(ClientAttributes(statedByBackend: [:], before: before).inForce.isEmpty)
    }

    /// The token decides about an attribute it vouches for, even if clients may state it.
    @Test func `a client contradicts nobody who vouches`() {
        #expect(throws: ClientAttributes.Rejection.contradictsToken(attribute: "theme")) {
            try Self.client(["theme": ["dark"]], token: ["theme": ["light"]])
        }
        #expect(throws: ClientAttributes.Rejection.contradictsToken(attribute: "account")) {
            try Self.client(["account": ["1", "2"]], token: ["account": ["1"]])
        }
    }

    @Test func `what nobody vouches for is refused, the first by name`() {
        #expect(throws: ClientAttributes.Rejection.notVouched(attribute: "account")) {
            try Self.client(["b": ["1"], "account": ["42"], "theme": ["dark"]])
        }
    }

    /// Compares the attributes with a model that remembers who stated what last.
    @Test(arguments: 0..<20)
    func `whatever happens, each attribute in force is vouched for now`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let names = ["account", "team", "theme"]
        func some() -> [String: [String]] {
            var some: [String: [String]] = [:]
            for name in names where Bool.random(using: &random) {
                some[name] = [["1", "2"].randomElement(using: &random) ?? ""]
            }
            return some
        }
        var attributes = ClientAttributes()
        var (token, backend): ([String: [String]], [String: [String]]) = ([:], [:])
        for _ in 0..<200 {
            let said = some()
            switch Int.random(in: 0..<3, using: &random) {
            case 0:
                attributes = ClientAttributes(statedByBackend: said, before: attributes)
                backend = said
                token = token.filter { said[$0.key] == nil || said[$0.key] == $0.value }
            case 1:
                guard let presented = try? attributes.presenting(said) else { continue }
                (attributes, token) = (presented, said)
            default:
                let stated = some()
                guard let registered = try? Self.client(stated, token: said, before: attributes)
                else { continue }
                (attributes, token) = (registered, said)
            }
            for (name, values) in attributes.inForce {
                let isVouched = backend[name] == values || token[name] == values
                #expect(isVouched || (name == "theme" && attributes.own[name] == values))
            }
            for (name, values) in token.merging(backend, uniquingKeysWith: { $1 }) {
                #expect(attributes.inForce[name] == values)
            }
        }
    }
}

/// Names that Unicode holds to be equal, such as `K` and the Kelvin sign, are one name: in the maps
/// of attributes, in the catalog's lists and in its bindings. Another spelling gives a client no
/// second attribute, hides no contradiction, and states nothing that the catalog does not list.
/// Values, clients and apps are compared byte by byte.
@Suite struct EquivalentNameTests {
    private let kelvin = "\u{212A}unde"

    @Test func `another spelling of a vouched attribute contradicts it`() {
        for token in [["Kunde": ["1"]], [kelvin: ["1"]]] {
            for name in ["Kunde", kelvin] {
                #expect(throws: ClientAttributes.Rejection.contradictsToken(attribute: name)) {
                    try ClientAttributes(
                        statedByClient: [name: ["2"]], token: token, selfDeclared: ["Kunde"])
                }
                let backend = ClientAttributes(backend: [name: ["2"]])
                #expect(throws: ClientAttributes.Rejection.self) { try backend.presenting(token) }
            }
        }
    }

    @Test func `another spelling declares nothing that the catalog does not list`() throws {
        #expect(throws: ClientAttributes.Rejection.notVouched(attribute: kelvin)) {
            try ClientAttributes(
                statedByClient: [kelvin: ["2"]], token: [:], selfDeclared: ["theme"])
        }
        // What it lists a client may state in either spelling; the two are one attribute.
        let stated = try ClientAttributes(
            statedByClient: [kelvin: ["2"]], token: [:], selfDeclared: ["Kunde"])
        #expect(stated.inForce == ["Kunde": ["2"]])
        // The next token decides, whatever its spelling.
        #expect(throws: ClientAttributes.Rejection.self) {
            try stated.presenting(["Kunde": ["3"]])
        }
    }
}
