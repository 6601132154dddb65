import CCurl
import Foundation

/// An HTTPS client for tests: one request at a time over one connection, which stays open.
///
/// Requests block their thread; from several threads they queue. ``send(_:_:token:headers:body:)``
/// is the same for tasks.
package final class TestHTTP: @unchecked Sendable {
    // Sound: `handle` is touched only on `queue`.
    private let handle = TestHTTPHandle()
    private let queue = DispatchQueue(label: "test-http")

    private let url: String
    private let ca: String
    private let version: TestHTTPVersion
    private let timeoutSeconds: Int

    /// A client that trusts only the certificates in the file `ca`.
    package init(
        url: String, ca: String, version: TestHTTPVersion = .one, timeoutSeconds: Int = 60
    ) {
        self.url = url
        self.ca = ca
        self.version = version
        self.timeoutSeconds = timeoutSeconds
    }

    /// Sends a request and returns the whole answer, of any status.
    ///
    /// - Parameters:
    ///   - path: Path and query.
    ///   - token: Sent as a bearer token.
    ///   - body: Sent as `application/json` unless `headers` name another content type.
    /// - Throws: ``TestHTTPError`` when no whole answer came within the client's timeout.
    package func request(
        _ method: String, _ path: String, token: String? = nil,
        headers: [(String, String)] = [], body: String? = nil
    ) throws -> TestHTTPAnswer {
        try queue.sync { try perform(method, path, token, headers, body.map { Array($0.utf8) }) }
    }

    /// The same without blocking the calling task's thread.
    package func send(
        _ method: String, _ path: String, token: String? = nil,
        headers: [(String, String)] = [], body: String? = nil
    ) async throws -> TestHTTPAnswer {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { [self] in
                continuation.resume(
                    with: Result {
                        try perform(method, path, token, headers, body.map { Array($0.utf8) })
                    })
            }
        }
    }

    private final class Answer {
        var answer = TestHTTPAnswer()
    }

    private func perform(
        _ method: String, _ path: String, _ token: String?, _ headers: [(String, String)],
        _ body: [UInt8]?
    ) throws -> TestHTTPAnswer {
        let fields = testHeaders(token, headers, hasBody: body != nil)
        handle.prepare(
            url: url + path, ca: ca, version: version, method: method, headers: fields, body: body)
        handle.set(CURLOPT_TIMEOUT, timeoutSeconds)
        let answer = Answer()
        let code = withExtendedLifetime(answer) {
            handle.setCallbacks(
                header: { bytes, size, count, context in
                    guard let bytes, let context else { return 0 }
                    let answer = Unmanaged<Answer>.fromOpaque(context).takeUnretainedValue()
                    let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
                    answer.answer.take(headerLine: String(decoding: line, as: UTF8.self))
                    return size * count
                },
                body: { bytes, size, count, context in
                    guard let bytes, let context else { return 0 }
                    let answer = Unmanaged<Answer>.fromOpaque(context).takeUnretainedValue()
                    answer.answer.body.append(
                        contentsOf: UnsafeRawBufferPointer(start: bytes, count: size * count))
                    return size * count
                },
                context: Unmanaged.passUnretained(answer).toOpaque())
            return handle.perform()
        }
        guard code == CURLE_OK else {
            throw TestHTTPError(
                "\(method) \(path)", code: code.rawValue,
                "\(handle.words(for: code)), after status \(answer.answer.status) and "
                    + "\(answer.answer.body.count) bytes of the body")
        }
        TestHTTPRecord.add(method, url + path, headers: fields, body: body, answer.answer)
        return answer.answer
    }
}

/// The header fields of a request.
func testHeaders(
    _ token: String?, _ headers: [(String, String)], hasBody: Bool
) -> [(String, String)] {
    var headers = headers
    if let token { headers.append(("Authorization", "Bearer \(token)")) }
    if hasBody, !headers.contains(where: { $0.0.lowercased() == "content-type" }) {
        headers.append(("Content-Type", "application/json"))
    }
    return headers
}
