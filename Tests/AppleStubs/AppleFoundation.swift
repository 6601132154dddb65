// swift-format-ignore-file
// A stub for Deploy/check-client: what Apple's Foundation has and Linux's lacks, with the names and
// types that Apple publishes, without behavior. Only what the client and its article use.
@_exported import Foundation
@_exported import FoundationNetworking

extension URLSession {
    public struct AsyncBytes: AsyncSequence, @unchecked Sendable {
        public typealias Element = UInt8
        public typealias AsyncIterator = Iterator

        public struct Iterator: AsyncIteratorProtocol {
            public mutating func next() async throws -> UInt8? { nil }
            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws(any Error) -> UInt8? { nil }
        }

        public let task: URLSessionDataTask
        public func makeAsyncIterator() -> Iterator { Iterator() }
    }

    public func bytes(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URLSession.AsyncBytes, URLResponse) { throw URLError(.unknown) }
}

extension FileManager {
    public func containerURL(forSecurityApplicationGroupIdentifier: String) -> URL? { nil }
}
