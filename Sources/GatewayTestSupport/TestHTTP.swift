import CurlMulti
import Foundation
import Synchronization

/// An HTTPS client for tests: one request at a time over one connection, which stays open. Requests
/// block their thread; from several threads they queue. ``send(_:_:token:headers:body:)`` is the
/// same for tasks.
package final class TestHTTP: Sendable {
    private let client: CurlClient
    private let url: String
    private let timeoutSeconds: Int

    /// A client that trusts only the certificates in the file `ca`.
    package init(
        url: String, ca: String, version: TestHTTPVersion = .one,
        timeoutSeconds: Int = Int(Patience.seconds)
    ) {
        self.url = url
        self.timeoutSeconds = timeoutSeconds
        client = testClient(ca: ca, version)
    }

    /// Sends a request and returns the whole answer, of any status. The `token` is a bearer token;
    /// the `body` is `application/json` unless `headers` name another content type. Throws
    /// ``TestHTTPError`` without a whole answer within the client's timeout.
    package func request(
        _ method: String, _ path: String, token: String? = nil,
        headers: [(String, String)] = [], body: String? = nil
    ) throws -> TestHTTPAnswer {
        let found = Mutex<Result<TestHTTPAnswer, any Error>?>(nil)
        let isOver = DispatchSemaphore(value: 0)
        start(method, path, token: token, headers: headers, body: body) { result in
            found.withLock { $0 = result }
            isOver.signal()
        }
        while true {
            isOver.wait()
            if let result = found.withLock({ $0 }) { return try result.get() }
        }
    }

    /// The same without blocking the calling task's thread.
    package func send(
        _ method: String, _ path: String, token: String? = nil,
        headers: [(String, String)] = [], body: String? = nil
    ) async throws -> TestHTTPAnswer {
        try await withCheckedThrowingContinuation { continuation in
            start(method, path, token: token, headers: headers, body: body) {
                continuation.resume(with: $0)
            }
        }
    }

    private func start(
        _ method: String, _ path: String, token: String?, headers: [(String, String)],
        body: String?, _ finished: @escaping @Sendable (Result<TestHTTPAnswer, any Error>) -> Void
    ) {
        let body = body.map { Array($0.utf8) }
        let headers = testHeaders(token, headers, hasBody: body != nil)
        let collector = AnswerCollector { [url] answer, failure in
            if let failure {
                finished(.failure(TestHTTPError("\(method) \(path)", failure, answer)))
            } else {
                TestHTTPRecord.add(method, url + path, headers: headers, body: body, answer)
                finished(.success(answer))
            }
        }
        do throws(CurlError) {
            let request = CurlRequest(
                method, origin: url, target: path, fields: try CurlFields(headers), body: body,
                timeout: .seconds(timeoutSeconds))
            _ = client.start(request, receiver: collector)
        } catch {
            collector.ended(nil, error)
        }
    }
}

/// Collects one answer, on the client's thread.
private final class AnswerCollector: TransferReceiver {
    private let answer = Mutex(TestHTTPAnswer())
    private let finished: @Sendable (TestHTTPAnswer, CurlError?) -> Void

    init(_ finished: @escaping @Sendable (TestHTTPAnswer, CurlError?) -> Void) {
        self.finished = finished
    }

    func received(_ head: CurlHead) {
        answer.withLock { $0 = TestHTTPAnswer(head) }
    }

    func received(_ piece: UnsafeRawBufferPointer) -> Int? {
        answer.withLock { $0.body.append(contentsOf: piece) }
        return piece.count
    }

    func ended(_ head: CurlHead?, _ failure: CurlError?) {
        finished(answer.withLock { $0 }, failure)
    }
}

/// A client of one connection that trusts only the certificates in the file `ca`.
func testClient(
    ca: String, _ version: TestHTTPVersion, receiveBufferBytes: Int? = nil
) -> CurlClient {
    // OpenSSL writes to sockets that a killed server has closed.
    signal(SIGPIPE, SIG_IGN)
    var configuration = CurlClient.Configuration(name: "test-http")
    configuration.trust = CurlTrust(file: ca)
    configuration.speaksHTTP2 = version == .two
    configuration.allowsPlainText = true
    configuration.repeatsRequests = true
    configuration.requestsMax = 1
    (configuration.urlBytesMax, configuration.bodyBytesMax) = (.max, .max)
    configuration.connectTimeout = Patience.duration
    configuration.receiveBufferBytes = receiveBufferBytes.map { Int32($0) }
    do {
        return try CurlClient(configuration)
    } catch {
        fatalError("\(error)")
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
