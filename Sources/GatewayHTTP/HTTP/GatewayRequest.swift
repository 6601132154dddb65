import GatewayEngine
import NIOCore
import NIOHTTP1

/// A request, as its route has it.
package struct GatewayRequest: Sendable {
    package let head: HTTPRequestHead
    let body: RequestBody
    /// Charges the request to those it came from; `nil` where nothing is limited.
    var account: RequestAccount?

    package init(head: HTTPRequestHead, body: RequestBody, account: RequestAccount? = nil) {
        self.head = head
        self.body = body
        self.account = account
    }
}

/// What follows a request's head.
package enum RequestBody: Sendable {
    /// Pieces of a body as they come, and the error that ends one before its end.
    package typealias Pieces = NIOThrowingAsyncSequenceProducer<
        ByteBuffer, any Error, NIOAsyncSequenceProducerBackPressureStrategies.HighLowWatermark,
        BodyDemand
    >

    /// All of it came with the head; `nil` when there is none.
    case whole(ByteBuffer?)
    /// More of it may come; it can be read once.
    case pieces(Pieces)
}

/// Asks a connection for more of a body once those that read it want more.
package final class BodyDemand: NIOAsyncSequenceProducerDelegate {
    private let handler: NIOLoopBound<HTTPConnectionHandler>

    /// Must be made on the handler's loop.
    init(_ handler: HTTPConnectionHandler, on loop: any EventLoop) {
        self.handler = NIOLoopBound(handler, eventLoop: loop)
    }

    package func produceMore() {
        handler.eventLoop.execute { [handler] in handler.value.bodyWanted() }
    }

    /// Nobody reads any more: what still comes is dropped.
    package func didTerminate() { produceMore() }
}

/// The answer to a request.
package struct GatewayAnswer: Sendable {
    /// The part of an answer that follows its head.
    enum Content: Sendable {
        /// All of it is there; `nil` without a body.
        case whole(ByteBuffer?)
        /// A body of so many bytes is left out.
        case omitted(length: Int)
        /// Pieces of a body, each of which is asked for when the one before is written.
        case pieces(AsyncStream<ByteBuffer>)
    }

    package var head: HTTPResponseHead
    var content: Content

    /// The body that is sent at once, if there is one.
    var body: ByteBuffer? {
        if case .whole(let body) = content { body } else { nil }
    }

    /// The length that the head states; `nil` without a body.
    var contentLength: Int? {
        switch content {
        case .whole(let body): body?.readableBytes
        case .omitted(let length): length
        case .pieces: nil
        }
    }

    /// Leaves the body out, as in the answer to `HEAD` (RFC 9110 section 9.3.2).
    mutating func omitBody() { content = .omitted(length: contentLength ?? 0) }

    /// - Parameter headers: Without those that frame the body.
    package init(
        _ status: HTTPResponseStatus, headers: HTTPHeaders = [:], body: ByteBuffer? = nil
    ) {
        head = HTTPResponseHead(version: .http1_1, status: status, headers: headers)
        content = .whole(body)
    }

    /// - Parameters:
    ///   - headers: Without those that frame the body.
    ///   - pieces: Cancelled when the peer or the gateway leaves.
    package init(
        _ status: HTTPResponseStatus, headers: HTTPHeaders, pieces: AsyncStream<ByteBuffer>
    ) {
        head = HTTPResponseHead(version: .http1_1, status: status, headers: headers)
        content = .pieces(pieces)
    }
}
