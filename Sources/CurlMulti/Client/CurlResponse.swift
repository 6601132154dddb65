/// The status and header fields of a response.
package struct CurlHead: Sendable {
    /// The status; 0 before it arrives.
    package fileprivate(set) var status = 0
    /// `1.1` or `2`.
    package fileprivate(set) var version = ""
    /// Header fields in the order received, with names in lower case. Fields beyond 100, or beyond
    /// 16 KiB, are dropped: a peer must not determine how much memory is used.
    package fileprivate(set) var fields: [(name: String, value: String)] = []

    /// The value of the first field with this name, given in lower case.
    package subscript(name: String) -> String? { fields.first { $0.name == name }?.value }
}

/// A response whose body was read as a whole.
package struct CurlResponse: Sendable {
    /// The status and header fields.
    package let head: CurlHead
    /// The body, as far as it arrived and was within the limit.
    package let body: [UInt8]
    /// The reason why the body is not complete; `nil` when it is. A response counts once its status
    /// has arrived, whatever happens afterwards.
    package let failure: CurlError?

    /// The status, 200...999.
    package var status: Int { head.status }
}

/// Parses the head of a response, which libcurl passes line by line. Heads of interim responses,
/// and trailers, are dropped.
struct ResponseHeadParser {
    private(set) var head = CurlHead()
    private var isComplete = false
    private var bytes = 0

    private static let fieldsMax = 100
    private static let bytesMax = 16 * 1_024

    /// Reads one line. Returns whether the line completes the head.
    mutating func read(_ line: UnsafeRawBufferPointer) -> Bool {
        guard !isComplete else { return false }
        let isBlank = { (byte: UInt8) in byte <= 0x20 }
        var line = line[...]
        while line.last.map(isBlank) == true { line.removeLast() }
        if line.starts(with: "HTTP/".utf8) {
            // The first line of all, or the first line after an interim response.
            let words = line.dropFirst(5).split(separator: UInt8(ascii: " "))
            head = CurlHead()
            bytes = 0
            head.version = String(decoding: words.first ?? line[..<line.startIndex], as: UTF8.self)
            head.status =
                words.dropFirst().first?.prefix(3).reduce(0) { $0 * 10 + Int($1 & 0x0F) } ?? 0
        } else if line.isEmpty {
            isComplete = head.status >= 200
        } else if let colon = line.firstIndex(of: UInt8(ascii: ":")),
            head.fields.count < Self.fieldsMax, bytes + line.count <= Self.bytesMax
        {
            bytes += line.count
            let value = line[(colon + 1)...].drop(while: isBlank)
            head.fields.append(
                (
                    name: String(decoding: line[..<colon], as: UTF8.self).lowercased(),
                    value: String(decoding: value, as: UTF8.self)
                ))
        }
        return isComplete
    }
}
