import Synchronization

/// Reads the response to one request, for one task. The request ends when its reader is released.
package final class CurlReader: Sendable {
    private let client: CurlClient
    private let call: CurlCall
    private let buffer: ResponseBuffer

    init(_ client: CurlClient, _ request: CurlRequest, _ limit: ResponseBuffer.Limit) {
        self.client = client
        buffer = ResponseBuffer(limit)
        call = client.start(request, receiver: buffer)
    }

    deinit {
        if !buffer.state.withLock({ $0.hasEnded }) { client.cancel(call) }
    }

    /// Returns the head of the response, once it has arrived.
    package func head() async throws(CurlError) -> CurlHead {
        try await value { state in
            if let head = state.head { return .success(head) }
            return state.hasEnded ? .failure(state.failure ?? .hasNoHead) : nil
        }
    }

    /// Returns the bytes that arrived since the last call, once there are any; `nil` at the end.
    package func next() async throws(CurlError) -> [UInt8]? {
        let (piece, wasPaused) = try await value { state -> Result<([UInt8]?, Bool), CurlError>? in
            if let failure = state.failure, failure.isOfThisSide || state.body.isEmpty {
                return .failure(failure)
            }
            guard !state.body.isEmpty else { return state.hasEnded ? .success((nil, false)) : nil }
            defer { (state.body, state.isPaused) = ([], false) }
            return .success((state.body, state.isPaused))
        }
        if wasPaused { client.resume(call) }
        return piece
    }

    /// Returns the response with its body, once it has ended.
    func response() async throws(CurlError) -> CurlResponse {
        try await value { state in
            guard state.hasEnded else { return nil }
            guard let head = state.head, state.failure?.isOfThisSide != true else {
                return .failure(state.failure ?? .hasNoHead)
            }
            return .success(CurlResponse(head: head, body: state.body, failure: state.failure))
        }
    }

    /// Returns the value that `find` finds in the buffer, as soon as there is one.
    private func value<Value: Sendable>(
        _ find: (inout ResponseBuffer.State) -> Result<Value, CurlError>?
    ) async throws(CurlError) -> Value {
        while true {
            let (found, version) = buffer.state.withLock { (find(&$0), $0.version) }
            if let found { return try found.get() }
            await withTaskCancellationHandler {
                await buffer.change(since: version)
            } onCancel: {
                client.cancel(call)
            }
        }
    }
}

extension CurlError {
    fileprivate static let hasNoHead = CurlError(.connectionEnded, "the response has no head")

    /// Whether our side has ended the request, so that no part of its response counts.
    fileprivate var isOfThisSide: Bool { code == .cancelled || code == .closed }
}
