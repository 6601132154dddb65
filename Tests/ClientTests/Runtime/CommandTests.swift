import ArgumentParser
import Foundation
import GatewaySigning
import Testing
import TimelineGatewayClient
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

    @Test(arguments: [
        ("app: com.mygame\nwidgets: []\n", "application/yaml"),
        (#"{"app":"com.mygame"}"#, "application/json"),
    ])
    func aCatalogSaysItsAppAndForm(text: String, mediaType: String) throws {
        let file = try CatalogFile(bytes: Array(text.utf8))
        #expect(file.app == "com.mygame" && file.mediaType == mediaType)
    }

    @Test func aNotificationIsPrintedWithWhatIsStale() {
        var stale = claims([character("Unipony")], sets: ["k"])
        stale.reload[0].parameters.append(.init(name: "skin", value: nil))
        stale.activities = [
            .init(type: "Battle", id: "7"),
            .init(type: "Battle", attributes: [.init(name: "hero", value: nil)]),
        ]
        #expect(
            NotificationReport.stale(stale) == [
                "timeline com.mygame.character-detail character=Unipony skin=(unset)",
                "recommendations k", "activity Battle 7", "activity Battle hero=(unset)",
            ])
        #expect(NotificationReport.stale(claims(all: true)) == ["everything"])
        let report = NotificationReport(time: .now, outcome: .failure(.unknownKey))
        #expect(report.text.contains("NOT VERIFIED"))
        #expect(report.json.objectValue?["verified"] == false)
    }

    @Test func aTokenReportNeverShowsTheSignature() throws {
        let key = try SigningKey()
        let jws = try JWSSigner(key: key, type: "JWT").sign(
            payload: Array(#"{"sub":"device-1","exp":100}"#.utf8))
        let text = String(decoding: jws, as: UTF8.self)
        let signature = try #require(text.split(separator: ".").last)
        let report = TokenReport(text, keys: JWKSet([key.publicKey]), now: 50)
        #expect(report.isVerified == true && report.faults.isEmpty)
        #expect(report.text.contains("device-1") && !report.text.contains(signature))
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

    @Test func anAnswerThatCannotBeReadCountsAsNone() {
        #expect(ExitStatus.of(GatewayFailure.unreadable("")) == ExitCode(3))
    }

    @Test func aTriggeredCommandDoesNotSeeTheToken() {
        let environment = ShellCommand.environment(
            ["TIMELINE_GATEWAY_TOKEN": "secret", "PATH": "/bin"], claims: claims(all: true))
        #expect(environment["TIMELINE_GATEWAY_TOKEN"] == nil)
        #expect(environment["PATH"] == "/bin")
        #expect(environment["TIMELINE_NOTIFICATION"]?.contains(#""all":true"#) == true)
    }
}

@Suite struct ClientsCommandTests {
    @Test func `an attribute is a name and a value, encoded for a query`() throws {
        let attribute = try #require(AttributeValue(argument: "account:4 2:&é"))
        #expect(attribute.name == "account" && attribute.value == "4 2:&é")
        #expect(attribute.encoded == "account%3A4%202%3A%26%C3%A9")
        #expect(AttributeValue(argument: "account") == nil)
        #expect(AttributeValue(argument: ":42") == nil)
    }

    @Test func `a page is asked for as the options say`() throws {
        let list = try ClientsCommand.List.parse(["--prefix", "my-", "--after", "one"])
        #expect(list.query == "limit=100&prefix=my-&after=one")
        #expect(throws: (any Error).self) { try ClientsCommand.List.parse(["--prefix", "a b"]) }
        #expect(throws: (any Error).self) { try ClientsCommand.List.parse(["--limit", "0"]) }
    }

    @Test(
        arguments: [
            (["psot", "--entity", "X"], ["psot", "post"]),
            (["catalog", "aply"], ["aply", "catalog", "apply"]), (["frobnicate"], ["frobnicate"]),
            (["post", "--entitty", "X"], ["--entitty", "--entity"]),
            (["reload", "--url", "u", "--knd=x"], ["--knd", "--kind"]),
            (["post", "--", "--entitty"], []), (["reload", "--kind", "x"], []),
            (["help", "psot"], []), (["--version"], []), ([], []),
        ] as [([String], [String])])
    func `a misspelt command or option is named, and what may be meant`(
        arguments: [String], words: [String]
    ) {
        let hint = CommandHint.text(for: arguments, of: Timelinectl.self) ?? ""
        #expect(hint.matches(of: /`(.+?)`/).map { String($0.1) } == words)
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

    @Test func `a screen continues long lines and says how many it leaves out`() {
        let layout = ScreenLayout(rows: 4, columns: 20)
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
}
