import HTTPTypes
import NIOCore

/// A request of the TLS port, as its route has it.
struct GatewayRequest: Sendable {
    let head: HTTPRequest
    let body: RequestBody

    var method: HTTPRequest.Method { head.method }
    var headers: HTTPFields { head.headerFields }
}

/// What follows a request's head.
enum RequestBody: Sendable {
    /// Pieces of a body as they come, and the error that ends one before its end.
    typealias Pieces = NIOThrowingAsyncSequenceProducer<
        ByteBuffer, any Error, NIOAsyncSequenceProducerBackPressureStrategies.HighLowWatermark,
        BodyDemand
    >

    /// All of it came with the head; `nil` when there is none.
    case whole(ByteBuffer?)
    /// More of it may come; it can be read once.
    case pieces(Pieces)
}

/// Asks a connection for more of a body once those that read it want more.
final class BodyDemand: NIOAsyncSequenceProducerDelegate {
    private let turns: NIOLoopBound<RequestTurns>

    /// Must be made on the loop of `turns`.
    init(_ turns: RequestTurns, on loop: any EventLoop) {
        self.turns = NIOLoopBound(turns, eventLoop: loop)
    }

    func produceMore() {
        turns.eventLoop.execute { [turns] in turns.value.bodyIsWanted() }
    }

    /// Nobody reads any more: what still comes is dropped.
    func didTerminate() { produceMore() }
}

/// What a route answers.
struct GatewayAnswer: Sendable {
    var head: HTTPResponse
    let body: ByteBuffer?

    /// An answer whose body, if there is one, has its length in the head.
    init(_ status: HTTPResponse.Status, headers: HTTPFields = [:], body: ByteBuffer? = nil) {
        head = HTTPResponse(status: status, headerFields: headers)
        self.body = body
        if let body {
            head.headerFields.append(
                HTTPField(name: .contentLength, value: String(body.readableBytes)))
        }
    }
}
