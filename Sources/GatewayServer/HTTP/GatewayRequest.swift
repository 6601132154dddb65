import NIOCore
import NIOHTTP1

/// A request of the TLS port, as its route has it.
struct GatewayRequest: Sendable {
    let head: HTTPRequestHead
    let body: RequestBody
    /// Charges the request to those it came from; `nil` where nothing is limited.
    var account: RequestAccount?
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
    var head: HTTPResponseHead
    let body: ByteBuffer?

    /// - Parameter headers: Without those that frame the body.
    init(_ status: HTTPResponseStatus, headers: HTTPHeaders = [:], body: ByteBuffer? = nil) {
        head = HTTPResponseHead(version: .http1_1, status: status, headers: headers)
        self.body = body
    }
}
