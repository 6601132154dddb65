import ArgumentParser
import Foundation
import TimelineRuntime
import WidgetModel

/// Standard output and standard error.
enum Terminal {
    /// The maximum input from standard input or a file, in bytes: more than any document may have.
    static let inputBytesMax = 16 * 1024 * 1024

    /// Prints a line on standard output, unbuffered: a reader of a pipe sees it at once.
    static func print(_ text: String) {
        FileHandle.standardOutput.write(Data((text + "\n").utf8))
    }

    /// Prints a line on standard error.
    static func complain(_ text: String) {
        FileHandle.standardError.write(Data((text + "\n").utf8))
    }

    /// Prints a document in the requested form.
    static func print(_ value: JSONValue, as form: OutputForm, _ text: () -> String) {
        print(form == .json ? value.text : text())
    }

    /// Prints a document unchanged, or as text for people.
    static func print<Document: Decodable>(
        _ value: JSONValue, as form: OutputForm, text: (Document) -> String
    ) throws(GatewayFailure) {
        if form == .json {
            print(value.text)
        } else {
            print(text(try Document(answer: value)))
        }
    }

    /// Reads the bytes of a file, or of standard input if the path is `-`. Throws `ValidationError`
    /// if it cannot be read or is too large.
    static func read(_ path: String) throws -> [UInt8] {
        let handle: FileHandle
        if path == "-" {
            handle = .standardInput
        } else if let file = FileHandle(forReadingAtPath: path) {
            handle = file
        } else {
            throw ValidationError("cannot read \(path)")
        }
        var bytes: [UInt8] = []
        while let data = try handle.read(upToCount: 64 * 1024), !data.isEmpty {
            bytes += data
            guard bytes.count <= inputBytesMax else {
                throw ValidationError("\(path) is longer than \(inputBytesMax) bytes")
            }
        }
        return bytes
    }

    /// Prints why the request failed and returns the matching exit status.
    static func fail(_ failure: GatewayFailure, as form: OutputForm) -> ExitCode {
        if form == .json {
            print(json(of: failure).text)
        } else {
            complain("timelinectl: \(text(of: failure))")
        }
        return ExitStatus.of(failure)
    }

    /// Returns a failure for the person at the command line: what the gateway says to apps' developers
    /// is replaced by what to do here.
    static func text(of failure: GatewayFailure) -> String {
        switch failure {
        case .refused(let problem):
            let advice: String? =
                switch problem.code {
                case "token-missing": "Give a token with --token or TIMELINE_GATEWAY_TOKEN."
                case "unknown-client": "`timelinectl clients list` lists those that are."
                case "unknown-app": "An app is created by `timelinectl catalog apply`."
                default: nil
                }
            guard let advice else { return failure.description }
            return "\(problem.status) \(problem.title)\n\(advice)"
        // The message says more than that a certificate is not trusted, or that nothing is of TLS.
        case .connection(let error) where [.notTrusted, .badRequest].contains(error.code):
            return error.message
        case .connection, .unreadable: return failure.description
        }
    }

    static func line(of failure: GatewayFailure) -> String {
        TextBlock(text(of: failure)).lines.joined(separator: ": ")
    }

    /// A failure as JSON: the gateway's problem document, or one of our own in the same form.
    static func json(of failure: GatewayFailure) -> JSONValue {
        switch failure {
        case .refused(let problem): problem.json
        case .connection(let error):
            [
                "type": .string("about:blank"), "title": .string(error.message),
                "code": .string(error.code.rawValue),
            ]
        case .unreadable(let what):
            ["type": .string("about:blank"), "title": .string(what), "code": "unreadable"]
        }
    }
}

/// The form in which results are printed.
enum OutputForm {
    /// For people.
    case text
    /// One JSON document per line.
    case json
}

extension Decodable {
    /// Decodes a document from a gateway's response.
    init(answer: JSONValue) throws(GatewayFailure) {
        do throws(Faults) {
            self = try Self(decoding: answer)
        } catch {
            throw .unreadable("\(error)")
        }
    }
}
