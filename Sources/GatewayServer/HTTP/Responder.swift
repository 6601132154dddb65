import NIOCore
import NIOHTTP1

/// Responds to the requests of a port.
package struct Responder: Sendable {
    /// Runs the work of a request; `nil` for the process's default executor.
    let executor: (any TaskExecutor)?
    /// Responds to one request; `nil` closes the connection.
    private let answer: @Sendable (GatewayRequest, any Channel) async -> RouteResponse?
    /// Adds the fields common to all responses of the port, including rejections of malformed
    /// requests.
    let complete: @Sendable (inout HTTPHeaders) -> Void

    package init(
        executor: (any TaskExecutor)?,
        complete: @escaping @Sendable (inout HTTPHeaders) -> Void = { _ in },
        answer: @escaping @Sendable (GatewayRequest, any Channel) async -> RouteResponse?
    ) {
        self.executor = executor
        self.complete = complete
        self.answer = answer
    }

    /// Returns the response to a request, on its connection or HTTP/2 stream; `nil` closes it.
    func respond(to request: GatewayRequest, on channel: any Channel) async -> RouteResponse? {
        guard var answer = await answer(request, channel) else { return nil }
        complete(&answer.head.headers)
        return answer
    }
}
