import ArgumentParser
import CatalogModel
import Foundation
import GatewayDocuments
import TimelineRuntime
import WidgetModel

struct CatalogCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "catalog",
        abstract: "Declare an app's entities, intents and widgets.",
        subcommands: [Apply.self, Show.self, Diff.self, Check.self, Write.self])

    struct Apply: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "apply",
            abstract: "Replace an app's catalog with a YAML or JSON file.",
            discussion: """
                The gateway checks the whole file and lists every error with its position. A file \
                with errors changes nothing. Needs a token with the scope catalog:write.

                Examples:
                  timelinectl catalog apply catalog.yaml
                  timelinectl catalog apply --app com.mygame.staging catalog.yaml
                  generate-catalog | timelinectl catalog apply -
                """)

        @OptionGroup var options: CommonOptions
        @OptionGroup var app: AppOption

        @Option(
            name: .customLong("if-match"),
            help: ArgumentHelp("Only replace the catalog that has this ETag.", valueName: "etag"))
        var ifMatch: String?

        @Argument(help: "The catalog, or - for standard input.")
        var file: String

        func run() async throws {
            let document = try CatalogFile(bytes: try Terminal.read(file))
            guard let app = try app.stated() ?? document.app else {
                throw ValidationError("the catalog names no app; set it with --app")
            }
            try await options.withService(of: app) { service throws(GatewayFailure) in
                let answer = try await service.document(
                    "PUT", "\(service.base)/catalog", body: document.bytes,
                    contentType: document.mediaType,
                    headers: ifMatch.map { [(name: "if-match", value: $0)] } ?? [])
                try Terminal.print(answer.value, as: options.form) { (taken: CatalogTaken) in
                    Self.text(taken, etag: answer.head["etag"])
                }
            }
        }

        static func text(_ taken: CatalogTaken, etag: String?) -> String {
            var lines = ["catalog of \(taken.app) is in force"]
            if let etag { lines[0] += ", ETag \(etag)" }
            if let keys = taken.contentKeys {
                lines.append("asks sources of content signed for " + keys.joined(separator: ", "))
            }
            return (lines + warningLines(taken.warnings)).joined(separator: "\n")
        }
    }
}

extension CatalogCommand {
    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show",
            abstract: "Print an app's catalog, as it was uploaded.",
            discussion: """
                Needs a token with the scope catalog:write or operator:read.

                Examples:
                  timelinectl catalog show > catalog.yaml
                """)

        @OptionGroup var options: CommonOptions
        @OptionGroup var app: AppOption

        func run() async throws {
            try await options.withService(of: app.required()) { service throws(GatewayFailure) in
                let response = try await service.answer(
                    to: GatewayRequest(
                        method: "GET", target: "\(service.base)/catalog",
                        headers: [(name: "accept", value: "*/*")], body: nil,
                        responseBytesMax: 16 << 20))
                let text = String(decoding: response.body, as: UTF8.self)
                Terminal.print(text.hasSuffix("\n") ? String(text.dropLast()) : text)
            }
        }
    }

    struct Diff: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "diff",
            abstract: "Show how a proposed catalog would have handled recent changes.",
            discussion: """
                Replays the logged changes against the current and the proposed catalog, for the \
                clients registered now, and prints the differences per kind: notifications, \
                pushes, and pushes that the budget would withhold. Pushes are counted as if no \
                client had a stream. Changes nothing. Needs a token with the scope catalog:write.

                Examples:
                  timelinectl catalog diff --file catalog.yaml
                  timelinectl catalog diff --file catalog.yaml --since 7d --json
                  timelinectl catalog diff --file catalog.yaml --mapping feed.yaml
                """)

        @OptionGroup var options: CommonOptions
        @OptionGroup var app: AppOption

        @Option(help: ArgumentHelp("The catalog, or - for standard input.", valueName: "file"))
        var file: String

        @Option(help: ArgumentHelp("Period to replay: 90s, 15m, 24h, 7d.", valueName: "duration"))
        var since = "24h"

        @Option(
            help: ArgumentHelp(
                "The mapping file of a change feed; names its tables that no rule uses.",
                valueName: "file"))
        var mapping: String?

        func validate() throws {
            guard !since.isEmpty, since.utf8.allSatisfy(\.isASCIIAlphanumeric) else {
                throw ValidationError("--since must be a duration such as 24h")
            }
        }

        func run() async throws {
            let document = try CatalogFile(bytes: try Terminal.read(file))
            guard let app = try app.stated() ?? document.app else {
                throw ValidationError("the catalog names no app; set it with --app")
            }
            try await options.send(
                "POST", "/catalog/diff?since=\(since)", of: app, body: document.bytes,
                contentType: document.mediaType, text: ExplanationText.difference)
            guard let mapping else { return }
            for fault in try FeedMapping(contentsOf: mapping).differences(from: document) {
                Terminal.complain("\(mapping): \(fault)")
            }
        }
    }
}

extension UInt8 {
    var isASCIIAlphanumeric: Bool {
        (0x30...0x39).contains(self) || (0x41...0x5A).contains(self) || (0x61...0x7A).contains(self)
    }
}

/// A catalog in the form in which it is sent.
struct CatalogFile {
    let bytes: [UInt8]
    let mediaType: String
    let value: JSONValue
    let app: String?

    /// - Parameter name: What the file is, for errors: it need not be a catalog.
    /// - Throws: `ValidationError` if it is neither JSON nor YAML.
    init(bytes: [UInt8], called name: String = "catalog") throws {
        self.bytes = bytes
        if let json = try? JSONValue(parsing: bytes) {
            value = json
            mediaType = "application/json"
        } else {
            guard let text = String(validating: bytes, as: UTF8.self) else {
                throw ValidationError("the \(name) is not UTF-8")
            }
            do throws(Faults) {
                value = try JSONValue(yaml: text)
            } catch {
                throw ValidationError("the \(name) \(error)")
            }
            mediaType = "application/yaml"
        }
        app = value.objectValue?["app"]?.stringValue.flatMap { Identifier.isValid($0) ? $0 : nil }
    }
}

/// The warnings of an answer, one a line.
func warningLines(_ warnings: [Fault]) -> [String] { warnings.map { "  warning: \($0)" } }

extension GatewayService {
    func catalog() async throws(GatewayFailure) -> Catalog {
        let answer = try await answer(to: GatewayRequest(target: "\(base)/catalog"))
        do throws(DocumentRefusal) {
            return try Catalog(
                contentType: answer.head["content-type"], body: answer.body, app: app,
                limits: .none)
        } catch {
            throw .unreadable("its catalog cannot be read: \(error)")
        }
    }
}
