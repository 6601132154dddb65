import ArgumentParser
import Foundation
import TimelineClient
import WidgetModel

/// Standard output and standard error.
enum Terminal {
    /// Longest text read from standard input or a file, bytes: more than any document may have.
    static let inputBytesMax = 16 * 1024 * 1024

    /// A line on standard output, at once: a reader behind a pipe sees it when it happens.
    static func print(_ text: String) {
        FileHandle.standardOutput.write(Data((text + "\n").utf8))
    }

    /// A line on standard error.
    static func complain(_ text: String) {
        FileHandle.standardError.write(Data((text + "\n").utf8))
    }

    /// A document, in the form asked for.
    static func print(_ value: JSONValue, as form: OutputForm, _ text: () -> String) {
        print(form == .json ? value.text : text())
    }

    /// Prints a document as it came, or as text for people.
    static func print<Document: Decodable>(
        _ value: JSONValue, as form: OutputForm, text: (Document) -> String
    ) throws(GatewayFailure) {
        if form == .json {
            print(value.text)
        } else {
            print(text(try Document(answer: value)))
        }
    }

    /// The bytes of a file, or of standard input when it is called `-`.
    ///
    /// - Throws: `ValidationError` when it cannot be read or is too large.
    static func read(_ path: String) throws -> [UInt8] {
        let handle: FileHandle
        if path == "-" {
            handle = .standardInput
        } else if let file = FileHandle(forReadingAtPath: path) {
            handle = file
        } else {
            throw ValidationError("\(path) cannot be read")
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

    /// Tells why the gateway did not do it, and ends with the status that says so.
    static func fail(_ failure: GatewayFailure, as form: OutputForm) -> ExitCode {
        if form == .json {
            print(json(of: failure).text)
        } else {
            complain("timelinectl: \(failure)")
        }
        return ExitStatus.of(failure)
    }

    /// A failure as JSON: the gateway's problem, or one of our own in the same form.
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

/// How results are printed.
enum OutputForm {
    /// For people.
    case text
    /// One JSON document a line.
    case json
}

extension Decodable {
    /// Reads a document that a gateway answered.
    init(answer: JSONValue) throws(GatewayFailure) {
        do throws(Faults) {
            self = try Self(decoding: answer)
        } catch {
            throw .unreadable("\(error)")
        }
    }
}
