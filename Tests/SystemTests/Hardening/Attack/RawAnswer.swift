import WidgetModel

/// An answer as it was sent on an HTTP/1.1 connection, or in an HTTP/2 stream.
struct RawAnswer: Sendable {
    var status = 0
    /// The header fields, with names in lower case.
    var headers: [String: String] = [:]
    var body: [UInt8] = []

    var json: JSONValue? { try? JSONValue(parsing: body) }
    var text: String { String(decoding: body, as: UTF8.self) }

    /// Returns every whole answer in `bytes`, including interim ones.
    static func all(in bytes: [UInt8]) -> [RawAnswer] {
        var answers: [RawAnswer] = []
        var rest = bytes[...]
        while let (answer, remaining) = first(in: rest) {
            answers.append(answer)
            rest = remaining
        }
        return answers
    }

    private static func first(in bytes: ArraySlice<UInt8>) -> (RawAnswer, ArraySlice<UInt8>)? {
        guard let end = headEnd(in: bytes) else { return nil }
        let head = String(decoding: bytes[bytes.startIndex..<end - 4], as: UTF8.self)
        let lines = head.split(separator: "\r\n")
        guard let words = lines.first?.split(separator: " "), words.count > 1 else { return nil }
        var answer = RawAnswer()
        answer.status = Int(words[1]) ?? 0
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            answer.headers[line[..<colon].lowercased()] =
                String(line[line.index(after: colon)...].drop { $0 == " " })
        }
        let length = answer.headers["content-length"].flatMap { Int($0) } ?? 0
        guard bytes.endIndex - end >= length else { return nil }
        answer.body = Array(bytes[end..<end + length])
        return (answer, bytes[(end + length)...])
    }

    private static func headEnd(in bytes: ArraySlice<UInt8>) -> Int? {
        let end: [UInt8] = [13, 10, 13, 10]
        guard bytes.count >= 4 else { return nil }
        var index = bytes.startIndex
        while index + 4 <= bytes.endIndex {
            if bytes[index] == 13, Array(bytes[index..<index + 4]) == end { return index + 4 }
            index += 1
        }
        return nil
    }
}

/// The result of a raw HTTP/1.1 conversation.
struct RawConversation: Sendable {
    let answers: [RawAnswer]
    let isClosed: Bool
}
