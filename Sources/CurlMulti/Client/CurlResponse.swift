/// Status and header fields of a response.
package struct CurlHead: Sendable {
    /// The status; 0 while none arrived.
    package fileprivate(set) var status = 0
    /// `1.1` or `2`.
    package fileprivate(set) var version = ""
    /// Header fields in the order sent, names in lower case. Fields beyond 100, or beyond 16 KiB,
    /// are left out: a peer must not choose how much is kept.
    package fileprivate(set) var fields: [(name: String, value: String)] = []

    /// The value of the first field of a name in lower case.
    package subscript(name: String) -> String? { fields.first { $0.name == name }?.value }
}

/// A response whose body was read as a whole.
package struct CurlResponse: Sendable {
    /// Status and header fields.
    package let head: CurlHead
    /// The body, as much of it as arrived and was allowed.
    package let body: [UInt8]
    /// Why that is not all of it; `nil` when it is. A response counts once its status is here,
    /// whatever happens then.
    package let failure: CurlError?

    /// The status, 200...999.
    package var status: Int { head.status }
}

/// Reads the head of a response line by line, as libcurl hands it over. Heads of interim responses
/// and trailers are left out.
struct ResponseHeadParser {
    private(set) var head = CurlHead()
    private var isComplete = false
    private var bytes = 0

    private static let fieldsMax = 100
    private static let bytesMax = 16 * 1_024

    /// Reads a line.
    ///
    /// - Returns: Whether the head is complete with it.
    mutating func read(_ line: UnsafeRawBufferPointer) -> Bool {
        guard !isComplete else { return false }
        let isBlank = { (byte: UInt8) in byte <= 0x20 }
        var line = line[...]
        while line.last.map(isBlank) == true { line.removeLast() }
        if line.starts(with: "HTTP/".utf8) {
            // An interim response came before, or this is the first line of all.
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
