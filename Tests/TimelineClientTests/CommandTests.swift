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
        #expect(throws: (any Error).self) { try PostCommand.parse(arguments) }
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
                == ["one", "iOS", "26.1", "2", "0", "1", "stream,", "apns"])
        #expect(ClientsCommand.List.text(ClientPage()) == "no clients")
        let list = try ClientsCommand.List.parse([
            "--attribute", "account:42", "--after", "one", "--limit", "5",
        ])
        #expect(list.query == "limit=5&attribute=account%3A42&after=one")
        #expect(throws: (any Error).self) { try ClientsCommand.List.parse(["--limit", "0"]) }
    }

    @Test func `nothing is erased without being asked twice`() throws {
        let page = try ClientPage(decoding: Self.page)
        #expect(ClientsCommand.Erase.text(page).hasPrefix("would erase more than 1 clients"))
        #expect(ClientsCommand.Erase.preview(page) == ["wouldErase": 1, "more": true])
    }
}
