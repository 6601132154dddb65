import ArgumentParser
import Foundation
import GatewayDocuments
import GatewaySigning
import Testing
import TimelineClient
import WidgetModel

@testable import timelinectl

@Suite struct CommandTests {
    @Test func optionsStateAnEvent() throws {
        let command = try PostCommand.parse([
            "--entity", "CharacterDetail", "--id", "Unipony", "--operation", "delete",
            "--property", "avatar", "--attribute", "account=42", "--attribute", "account=43",
            "--attribute", "note=a=b", "--urgency", "very-low", "--source", "s", "--event-id", "1",
        ])
        let event = try command.stated.event(now: Date(timeIntervalSince1970: 0))
        #expect(
            event
                == CloudEvent(
                    source: "s", id: "1", time: "1970-01-01T00:00:00Z",
                    change: Change(
                        entity: "CharacterDetail", id: "Unipony", operation: .delete,
                        properties: ["avatar"],
                        attributes: ["account": ["42", "43"], "note": ["a=b"]],
                        urgency: .veryLow)))
    }

    @Test(arguments: [
        [], ["--entity", "A", "--file", "f"], ["--entity", "A", "--attribute", "novalue"],
        ["--entity", "A", "--urgency", "now"], ["--file", "f", "--id", "1"],
    ])
    func aWrongPostIsRefusedBeforeAnythingIsSent(arguments: [String]) {
        #expect(throws: (any Error).self) { try PostCommand.parse(arguments).requireEvents() }
    }

    @Test func aFileOfEventsIsSentAsWhatItIs() throws {
        #expect(
            try EventOptions.mediaType(of: Array("[]".utf8)) == "application/cloudevents-batch+json"
        )
        #expect(try EventOptions.mediaType(of: Array("{}".utf8)) == "application/cloudevents+json")
        #expect(throws: ValidationError.self) { try EventOptions.mediaType(of: Array("7".utf8)) }
    }

    @Test func theEnvironmentSaysWhatOptionsDoNot() throws {
        let app = try AppOption.parse([])
        #expect(
            try app.required(environment: ["TIMELINE_GATEWAY_APP": "com.mygame"]) == "com.mygame")
        #expect(throws: ValidationError.self) { try app.required(environment: [:]) }
        #expect(throws: ValidationError.self) {
            try app.required(environment: ["TIMELINE_GATEWAY_APP": "a/b"])
        }
        let options = try CommonOptions.parse([])
        #expect(throws: ValidationError.self) { try options.connection(environment: [:]) }
        _ = try options.connection(environment: ["TIMELINE_GATEWAY_URL": "https://host"])
    }

    @Test func aCatalogSaysItsAppAndForm() throws {
        let yaml = try CatalogFile(bytes: Array("app: com.mygame\nwidgets: []\n".utf8))
        #expect(yaml.app == "com.mygame")
        #expect(yaml.mediaType == "application/yaml")
        let json = try CatalogFile(bytes: Array(#"{"app":"com.mygame"}"#.utf8))
        #expect(json.app == "com.mygame")
        #expect(json.mediaType == "application/json")
    }

    @Test func aNotificationIsPrintedWithWhatIsStale() {
        let time = Date(timeIntervalSince1970: 0)
        var stale = claims([character("Unipony")], sets: ["k"])
        stale.reload[0].parameters.append(.init(name: "skin", value: nil))
        #expect(
            NotificationReport(time: time, outcome: .success(stale)).text == """
                1970-01-01T00:00:00Z  verified  timeline com.mygame.character-detail \
                character=Unipony skin=(unset)
                                                recommendations k
                """)
        let failure = VerificationFailure(.unknownKey, "no such key")
        let report = NotificationReport(time: time, outcome: .failure(failure))
        #expect(report.text == "1970-01-01T00:00:00Z  NOT VERIFIED  unknown-key: no such key")
        #expect(report.json.objectValue?["verified"] == false)
        #expect(NotificationReport.stale(claims(all: true)) == ["everything"])
    }

    @Test func aTokenReportNeverShowsTheSignature() throws {
        let key = try SigningKey()
        let jws = try JWSSigner(key: key, type: "JWT").sign(
            payload: Array(#"{"sub":"device-1","exp":100}"#.utf8))
        let text = String(decoding: jws, as: UTF8.self)
        let signature = try #require(text.split(separator: ".").last)
        let report = TokenReport(text, keys: JWKSet([key.publicKey]), now: 50)
        #expect(report.isVerified == true)
        #expect(report.faults.isEmpty)
        #expect(report.text.contains("device-1"))
        #expect(!report.text.contains(signature))
        #expect(!report.json.text.contains(signature))
        let late = TokenReport(text, keys: nil, now: 100)
        #expect(late.isVerified == nil)
        #expect(late.faults == ["it expired on 1970-01-01T00:01:40Z"])
        let stranger = TokenReport(text, keys: JWKSet([try SigningKey().publicKey]), now: 50)
        #expect(stranger.faults == ["no key in the set has its kid"])
    }

    @Test(arguments: [
        "", "..", "a.b.c", "e30.e30", "e30.eyJleHAiOi05MjIzMzcyMDM2ODU0Nzc1ODA4fQ.e30",
    ])
    func anythingCanBeChecked(text: String) {
        #expect(!TokenReport(text, keys: JWKSet(), now: 0).faults.isEmpty)
    }

    @Test func everyFailureHasItsStatus() {
        let problem = ProblemDetails(status: 422, code: "x", title: "t")
        #expect(ExitStatus.of(GatewayFailure.refused(problem)) == ExitCode(1))
        #expect(
            ExitStatus.of(GatewayFailure.connection(ConnectionError(.notTrusted, "")))
                == ExitCode(3))
        #expect(ExitStatus.of(GatewayFailure.unreadable("")) == ExitCode(3))
        #expect(ExitStatus.of(ExitCode.validationFailure) == ExitCode(2))
        #expect(ExitStatus.of(ExitCode.success) == ExitCode(0))
    }

    @Test func aTriggeredCommandDoesNotSeeTheToken() {
        let environment = ShellCommand.environment(
            ["TIMELINE_GATEWAY_TOKEN": "secret", "PATH": "/bin"], claims: claims(all: true))
        #expect(environment["TIMELINE_GATEWAY_TOKEN"] == nil)
        #expect(environment["PATH"] == "/bin")
        #expect(environment["TIMELINE_NOTIFICATION"]?.contains(#""all":true"#) == true)
    }

    @Test(arguments: [
        ["post"], ["catalog", "apply"], ["register"], ["watch"], ["poll"], ["token", "check"],
        ["device"], ["resend"], ["attempts"], ["events"],
    ])
    func everyCommandHasExamples(path: [String]) {
        let help = Timelinectl.helpMessage(
            for: path == ["catalog", "apply"]
                ? CatalogCommand.Apply.self
                : path == ["token", "check"]
                    ? TokenCommand.Check.self
                    : Timelinectl.configuration.subcommands.first {
                        $0.configuration.commandName == path[0]
                    } ?? Timelinectl.self)
        #expect(help.contains("Examples:"))
    }
}

@Suite struct ConfigCommandTests {
    @Test func `what differs is a table, and contents stay where they are`() throws {
        let answer: JSONValue = [
            "changes": [
                [
                    "option": "threads", "takesEffect": "at the next start", "before": nil,
                    "after": "2",
                ],
                ["option": "tls.key", "takesEffect": "now", "contents": "changed"],
            ]
        ]
        let difference = try ConfigurationDifference(decoding: answer)
        let lines = ConfigCommand.text(difference).split(separator: "\n").map(String.init)
        #expect(lines.count == 3)
        #expect(lines[1].split(separator: " ").prefix(3) == ["threads", "default", "2"])
        #expect(lines[1].hasSuffix("at the next start"))
        #expect(lines[2].contains("contents changed"))
        #expect(ConfigCommand.text(ConfigurationDifference(changes: [])) == "no difference")
    }
}

@Suite struct ClientsCommandTests {
    private static let page: JSONValue = [
        "clients": [
            [
                "platform": "iOS", "osVersion": "26.1", "widgets": [[:], [:]],
                "recommendations": [], "controls": [[:]],
                "delivery": [["type": "stream"], ["type": "apns"]], "client": "one",
                "digest": "d1",
            ]
        ], "after": "one",
    ]

    @Test func `an attribute is a name and a value, encoded for a query`() throws {
        let attribute = try #require(AttributeValue(argument: "account:4 2:&é"))
        #expect(attribute.name == "account" && attribute.value == "4 2:&é")
        #expect(attribute.encoded == "account%3A4%202%3A%26%C3%A9")
        #expect(AttributeValue(argument: "account") == nil)
        #expect(AttributeValue(argument: ":42") == nil)
    }

    @Test func `a page says how it goes on`() throws {
        let page = try ClientPage(decoding: Self.page)
        let lines = ClientsCommand.List.text(page).split(separator: "\n")
        #expect(lines.count == 3 && lines[2] == "next page: --after one")
        #expect(
            lines[1].split(separator: " ").map(String.init)
                == ["one", "iOS", "26.1", "unknown", "-", "2", "0", "1", "stream,", "apns"])
        #expect(ClientsCommand.List.text(ClientPage()) == "no clients")
        let list = try ClientsCommand.List.parse([
            "--attribute", "account:42", "--after", "one", "--limit", "5",
        ])
        #expect(list.query == "limit=5&attribute=account%3A42&after=one")
        let prefixed = try ClientsCommand.List.parse(["--prefix", "my-"])
        #expect(prefixed.query == "limit=100&prefix=my-")
        #expect(throws: (any Error).self) { try ClientsCommand.List.parse(["--prefix", "a b"]) }
        #expect(throws: (any Error).self) { try ClientsCommand.List.parse(["--limit", "0"]) }
    }

    @Test(
        arguments: [
            (0, 0, nil, "fresh  2026-01-31T12:00:00Z"),
            (3, 0, nil, "3 stale  2026-01-31T12:00:00Z"),
            (0, 1, 2, "fresh, 2 lack attributes  stream open"),
        ] as [(Int, Int, Int?, String)])
    func `a client has a state and a time`(
        stale: Int, streams: Int, deaf: Int?, text: String
    ) {
        var (client, page) = (RegisteredClient(), ClientPage())
        client.client = "one"
        client.lastSeen = "2026-01-31T12:00:00Z"
        (client.stale, client.streams, client.dependOnNothing) = (stale, streams, deaf)
        page.clients = [client]
        #expect(ClientsCommand.List.text(page).contains(text))
    }

    @Test(
        arguments: [
            (["psot"], "`psot` is not a command; did you mean `post`?"),
            (["psot", "--entity", "X"], "`psot` is not a command; did you mean `post`?"),
            (["catalog", "aply"], "`aply` is not a command of `catalog`; did you mean `apply`?"),
            (["frobnicate"], "`frobnicate` is not a command"),
            (
                ["post", "--entitty", "X"],
                "`--entitty` is not an option of the command; did you mean `--entity`?"
            ),
            (
                ["reload", "--url", "u", "--knd=x"],
                "`--knd` is not an option of the command; did you mean `--kind`?"
            ),
            (
                ["watch", "--clent", "x"],
                "`--clent` is not an option of the command; did you mean `--client`?"
            ),
            (["post", "--", "--entitty"], nil), (["reload", "--kind", "x"], nil),
            (["help", "psot"], nil), (["--version"], nil), ([], nil),
        ] as [([String], String?)])
    func `a misspelt command or option is named, and what may be meant`(
        arguments: [String], hint: String?
    ) {
        #expect(CommandHint.text(for: arguments, of: Timelinectl.self) == hint)
    }

    @Test(arguments: [
        (
            ConnectionError.Code.unreachable, "Failed to connect to h port 1: Connection refused",
            "https://h:1: Failed to connect to h port 1: Connection refused"
        ),
        (
            .notTrusted, "SSL certificate problem: self-signed certificate in certificate chain",
            "https://h:1: its certificate is not trusted by ca.pem; name the CA that issued it with "
                + "--ca or TIMELINE_GATEWAY_CA (SSL certificate problem: self-signed certificate in "
                + "certificate chain)"
        ),
        (
            .notTrusted, "error setting certificate file: ca.pem",
            "https://h:1: ca.pem cannot be used as certificates to trust: --ca "
                + "(TIMELINE_GATEWAY_CA) must be a file with certificates in PEM"
        ),
        (
            .notTrusted, "OpenSSL/3.0.19: error:0A00010B:SSL routines::wrong version number",
            "https://h:1: it does not speak TLS; is this the gateway's TLS port?"
        ),
        (
            .notTrusted,
            "SSL: no alternative certificate subject name matches target host name 'h'",
            "https://h:1: its certificate is for another host; use the name in the certificate as "
                + "--url (SSL: no alternative certificate subject name matches target host name 'h')"
        ),
        (
            .badRequest, "Received HTTP/0.9 when not allowed",
            "https://h:1: it does not speak plain HTTP; is this the gateway's TLS port? --admin "
                + "needs the admin port, 127.0.0.1:9464 by default"
        ), (.silent, "the stream carried nothing", "the stream carried nothing"),
    ])
    func `a failed connection says what to do`(
        code: ConnectionError.Code, message: String, text: String
    ) {
        let advice = ConnectionAdvice(origin: "https://h:1", ca: "ca.pem")
        #expect(advice.error(ConnectionError(code, message)) == ConnectionError(code, text))
    }

    @Test func `what the gateway tells developers of apps is told in terms of this program`() {
        func text(_ code: String) -> String {
            Terminal.text(
                of: .refused(ProblemDetails(status: 404, code: code, title: "T", detail: "PUT it."))
            )
        }
        #expect(text("token-missing").hasSuffix("--token or TIMELINE_GATEWAY_TOKEN."))
        #expect(!text("unknown-client").contains("PUT"))
        #expect(text("other") == "404 T\nPUT it.")
        let failure = GatewayFailure.refused(
            ProblemDetails(status: 403, code: "x", title: "Not allowed", detail: "It lacks y."))
        #expect(Terminal.line(of: failure) == "403 Not allowed: It lacks y.")
    }

    @Test func `a token is asked for with its attributes`() throws {
        let command = try TokenCommand.Mint.parse([
            "--client", "phone", "--attribute", "account=42", "--attribute", "account=43", "--ttl",
            "30d",
        ])
        #expect(
            command.body == [
                "sub": "phone", "ttl": "30d", "attributes": ["account": ["42", "43"]],
            ])
    }

    @Test func `a registration with a webhook prints the keys to verify with`() {
        var registered = Registered()
        registered.webhookKeys = ["whpk_a", "whpk_b"]
        let text = RegisterCommand.text(registered)
        #expect(text.contains("  webhook key: whpk_a\n  webhook key: whpk_b"))
    }

    @Test func `an address that APNs rejects is explained with the topic that fits`() throws {
        var client = ExplainedClient()
        client.addresses = [
            try ExplainedAddress(
                decoding: [
                    "type": "apns", "pushType": "widgets", "token": "ab…", "for": "timelines",
                    "unusable": "dead-address", "problem": "The topic was t.",
                ])
        ]
        #expect(ExplanationText.client(client).contains("dead-address: The topic was t."))
    }

    @Test func `a screen continues long lines and says how many it leaves out`() {
        let layout = ScreenLayout(rows: 4, columns: 20)
        #expect(layout.fit(["short"]) == ["short"])
        let green = "\u{1B}[32mready\u{1B}[0m"
        #expect(
            layout.fit(["gateway \(green), is", "a  word and  others that go on"]) == [
                "gateway \(green), is", "a  word and  others", "      that go on",
            ])
        #expect(
            layout.fit(["1", "2", "3", "4", "5"]) == ["1", "2", "3", "… 2 more lines"])
        let long = String(repeating: "x", count: 30)
        #expect(layout.fit(["kid \(long) end"]) == ["kid", "      \(long)", "      end"])
        for columns in 1...40 {
            let lines = ScreenLayout(rows: 99, columns: columns).fit(["one two  three 🌉 four"])
            let words = lines.flatMap { $0.split(separator: " ") }
            #expect(words == ["one", "two", "three", "🌉", "four"])
        }
    }

    @Test func `nothing is erased without being asked twice`() throws {
        let page = try ClientPage(decoding: Self.page)
        #expect(ClientsCommand.Erase.text(page).hasPrefix("would erase more than 1 clients"))
        #expect(ClientsCommand.Erase.preview(page) == ["wouldErase": 1, "more": true])
    }
}

@Suite struct ExplanationTextTests {
    private func item(_ change: (inout ExplainedItem) -> Void) throws -> String {
        var client = ExplainedClient()
        var item = try ExplainedItem(decoding: ["kind": "k"])
        change(&item)
        client.client = "phone"
        client.widgets = [item]
        return ExplanationText.client(client)
    }

    @Test func `a time that is only a bound is said to be one`() throws {
        for isEarliest in [true, false] {
            let text = try item { item in
                var stale = ExplainedItem.Staleness()
                (stale.sequence, stale.latest, stale.cause) = (7, 9, "change")
                (stale.isEarliest, stale.time) = (isEarliest, "2026-01-31T12:00:00Z")
                (item.fresh, item.stale) = (false, stale)
            }
            let words =
                isEarliest ? "Z by change 7, latest 9" : "Z or earlier by change 7, latest 9"
            #expect(text.contains("stale since 2026-01-31T12:00:00" + words), "\(text)")
        }
    }

    @Test func `an item says which attribute the client lacks`() throws {
        let deaf = try item { ($0.lacks, $0.dependsOnNothing) = (["account"], true) }
        #expect(deaf.contains("depends on nothing: no client attribute account"), "\(deaf)")
        let part = try item { ($0.lacks, $0.fresh) = (["account"], true) }
        #expect(part.contains("fresh by rules that apply; no client attribute account"))
        #expect(try item { $0.fresh = true }.contains("fresh"))
    }

    @Test func `what a rule lists is said where it did not match for that`() {
        var (change, rule) = (ExplainedChange(), ConsideredRule())
        (rule.kind, rule.verdict) = ("k", "properties-not-listed")
        (rule.properties, rule.operations) = (["avatar", "health"], ["update"])
        change.rules = [rule]
        #expect(ExplanationText.change(change).contains("wants avatar, health"))
        change.rules[0].verdict = "operation-not-listed"
        #expect(ExplanationText.change(change).contains("wants update"))
        change.rules[0].verdict = "hit"
        #expect(!ExplanationText.change(change).contains("wants"))
    }
}

@Suite struct StatusReportTests {
    @Test func `clients that no change affects are named by kind and attribute`() {
        var (app, kind) = (AppStatus(), AppStatus.Kind())
        app.app = "com.mygame"
        kind.kind = "com.mygame.game-status"
        (kind.clientsLacking, kind.lacking) = (2, ["account"])
        app.kinds = [kind]
        let report = StatusReport(
            overview: Overview(), apps: [app], palette: Palette(hasColors: false))
        #expect(
            report.lines.contains(
                "  com.mygame.game-status: no change affects 2 of its clients, which lack account"))
    }

    @Test(arguments: [
        (true, "10.0.0.1:9443", "leads the cluster"),
        (false, "10.0.0.1:9443", "follows 10.0.0.1:9443"), (false, nil, "has no leader"),
    ])
    func `a node says what it is`(leads: Bool, leader: String?, text: String) {
        var (overview, cluster) = (Overview(), Overview.Cluster())
        (cluster.leads, cluster.leader) = (leads, leader)
        overview.cluster = cluster
        let report = StatusReport(overview: overview, palette: Palette(hasColors: false))
        #expect(report.lines.first?.hasSuffix(", " + text) == true)
    }
}
