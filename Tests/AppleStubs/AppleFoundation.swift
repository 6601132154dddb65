// swift-format-ignore-file
// A stub for Deploy/check-client: what Apple's Foundation has and Linux's lacks, with the names and
// types that Apple publishes. Only what the client and its article use. What is not public serves
// Devices.swift, which says what the stubs answer and sees what they were asked.
@_exported import Foundation
@_exported import FoundationNetworking

nonisolated(unsafe) var answer: ((URLRequest) throws -> URLResponse)!
nonisolated(unsafe) var begun: [RecordedTask] = []
final class RecordedTask: URLSessionDataTask, @unchecked Sendable {
    private(set) var isCancelled = false
    override init() { super.init() }
    override func cancel() { isCancelled = true }
}

extension URLSession {
    public struct AsyncBytes: AsyncSequence, @unchecked Sendable {
        public typealias Element = UInt8
        public typealias AsyncIterator = Iterator

        public struct Iterator: AsyncIteratorProtocol {
            var bytes = ([1, 10, 2] as [UInt8]).makeIterator()
            public mutating func next() async throws -> UInt8? { bytes.next() }
            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws(any Error) -> UInt8? { bytes.next() }
        }

        public let task: URLSessionDataTask
        public func makeAsyncIterator() -> Iterator { Iterator() }
    }

    public func bytes(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URLSession.AsyncBytes, URLResponse) {
        let task = RecordedTask()
        begun.append(task)
        return try (AsyncBytes(task: task), answer(request))
    }
}

extension FileManager {
    public func containerURL(forSecurityApplicationGroupIdentifier: String) -> URL? { nil }
}
