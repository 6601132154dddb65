import Foundation
import Synchronization
import WidgetModel

/// Writes what servers answered, a JSON object a line, to the file that the environment variable
/// `TIMELINE_GATEWAY_EXCHANGES` names; without it, nothing. `Deploy/check-api` compares it with the
/// OpenAPI documents, which must describe every answer that a test gets.
enum TestHTTPRecord {
    /// Longer bodies are not written down: they say nothing new.
    private static let bodyBytesMax = 1 << 20

    /// `nil` where nothing is written down.
    private static let file = Mutex(opened())

    private static func opened() -> FileHandle? {
        guard let path = ProcessInfo.processInfo.environment["TIMELINE_GATEWAY_EXCHANGES"],
            let stream = fopen(path, "a")
        else { return nil }
        return FileHandle(fileDescriptor: fileno(stream))
    }

    /// Writes an exchange down.
    static func add(
        _ method: String, _ url: String, headers: [(String, String)], body: [UInt8]?,
        _ answer: TestHTTPAnswer
    ) {
        let isWritten = file.withLock { $0 != nil }
        let sent = body ?? []
        guard isWritten, answer.body.count + sent.count <= bodyBytesMax else { return }
        let kind = headers.last { $0.0.lowercased() == "content-type" }?.1 ?? ""
        let line: JSONValue = [
            "method": .string(method), "url": .string(url), "sentType": .string(kind),
            "sent": .string(String(decoding: sent, as: UTF8.self)),
            "status": .integer(Int64(answer.status)),
            "headers": .array(
                answer.headers.map { [.string($0.name), .string($0.value)] }),
            "body": .string(answer.text),
        ]
        file.withLock { try? $0?.write(contentsOf: line.serialized + [UInt8(ascii: "\n")]) }
    }
}
