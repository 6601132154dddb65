import GatewayTLS
import NIOCore
import NIOHTTP1
import WidgetModel

/// A request in the form in which its route receives it.
package struct GatewayRequest: Sendable {
    package let head: HTTPRequestHead
    let body: RequestBody
    /// The address that the request is counted for; `nil` where addresses are not counted. A failure
    /// is the problem of a request whose proxy does not state it well.
    var source: Result<SourceAddress?, ProblemDetails> = .success(nil)
    /// The address of ``source``; `nil` where none is counted or well stated.
    package var address: SourceAddress? { (try? source.get()) ?? nil }
    /// The account that charges the request to its senders; `nil` where nothing is limited.
    var account: RequestAccount?
    /// The `Authorization` field that the ticket of a stream's request stood for, or why it stands for
    /// none; `nil` for every other request.
    var redeemed: Result<String, any Error>?
}

/// The part of a request after its head.
package enum RequestBody: Sendable {
    /// The pieces of a body as they arrive, and the error that ends one prematurely.
    package typealias Pieces = NIOThrowingAsyncSequenceProducer<
        ByteBuffer, any Error, NIOAsyncSequenceProducerBackPressureStrategies.HighLowWatermark,
        BodyDemand
    >

    /// The whole body arrived with the head; `nil` without a body.
    case whole(ByteBuffer?)
    /// More of the body may arrive; it can be read once.
    case pieces(Pieces, BodyDemand)
}

/// Asks a connection for more of a body when its readers want more.
package final class BodyDemand: NIOAsyncSequenceProducerDelegate {
    private let handler: NIOLoopBound<HTTPConnectionHandler>

    /// Must be created on the handler's loop.
    init(_ handler: HTTPConnectionHandler, on loop: any EventLoop) {
        self.handler = NIOLoopBound(handler, eventLoop: loop)
    }

    /// Widens the window of an HTTP/2 stream by bytes of the body that memory is reserved for.
    func permit(_ count: Int) {
        handler.eventLoop.execute { [handler] in handler.value.permit(count) }
    }

    package func produceMore() {
        handler.eventLoop.execute { [handler] in handler.value.bodyWanted() }
    }

    /// The readers have left: the rest of the body is dropped.
    package func didTerminate() { produceMore() }
}

package struct RouteResponse: Sendable {
    /// The part of a response after its head.
    enum Content: Sendable {
        /// The whole body; `nil` without a body.
        case whole(ByteBuffer?)
        /// A body of this length is omitted; `nil` for an unknown length.
        case omitted(length: Int?)
        /// Pieces of a body; each is requested when the previous one is written.
        case pieces(AsyncStream<ByteBuffer>)
    }

    package var head: HTTPResponseHead
    var content: Content

    /// The body that is sent at once, if there is one.
    var body: ByteBuffer? {
        if case .whole(let body) = content { body } else { nil }
    }

    /// The length stated in the head; `nil` where it is unknown, or where the status forbids it
    /// (RFC 9110 section 8.6).
    var contentLength: Int? {
        guard head.status.mayHaveResponseBody else { return nil }
        return switch content {
        case .whole(let body): body?.readableBytes ?? 0
        case .omitted(let length): length
        case .pieces: nil
        }
    }

    /// Omits the body, as in the response to `HEAD` (RFC 9110 section 9.3.2).
    mutating func omitBody() { content = .omitted(length: contentLength) }

    /// - Parameter headers: The fields except those that frame the body.
    package init(
        _ status: HTTPResponseStatus, headers: HTTPHeaders = [:], body: ByteBuffer? = nil
    ) {
        head = HTTPResponseHead(version: .http1_1, status: status, headers: headers)
        content = .whole(body)
    }

    /// - Parameters:
    ///   - headers: The fields except those that frame the body.
    ///   - pieces: The pieces of the body; cancelled when the peer or the gateway leaves.
    package init(
        _ status: HTTPResponseStatus, headers: HTTPHeaders, pieces: AsyncStream<ByteBuffer>
    ) {
        head = HTTPResponseHead(version: .http1_1, status: status, headers: headers)
        content = .pieces(pieces)
    }
}
