import CCurl
import CurlMulti
import GatewayCore

/// Takes what came of requests, on the engine's thread: it must not wait for anything.
package protocol DeliveryReceiver: AnyObject, Sendable {
    /// A request has ended. Called exactly once for each that was accepted.
    ///
    /// - Parameter tag: What the request was submitted with.
    func received(_ outcome: DeliveryOutcome, for tag: UInt64)
}

/// Sends requests with libcurl: one thread, and the connections its requests share.
///
/// Connections are kept for hours, and every one is opened after a look-up of its own. A request
/// is sent once at most: where libcurl would send it again by itself, it fails instead, and the
/// caller decides. HTTP/2 carries many requests over one connection where the peer offers it, as
/// many at once as the peer and ``Configuration/streamsMax`` allow.
///
/// libcurl cannot send an HTTP/2 PING for an engine (`curl_easy_upkeep` reaches no multi handle), so
/// idle connections are kept alive by TCP.
package final class DeliveryEngine: Sendable {
    private let gate: DeliveryGate
    private let loop: CurlLoop<DeliveryDriver>

    /// An engine; no connection is opened before the first request.
    ///
    /// - Throws: ``DeliveryError`` (`noMemory`) when libcurl has no memory or lacks an option.
    package init(_ configuration: Configuration) throws(DeliveryError) {
        let gate = DeliveryGate(configuration)
        let loop = CurlLoop(
            name: configuration.name, corkedMax: 8,
            configure: { multi in
                multi.set(CURLMOPT_MAX_HOST_CONNECTIONS, configuration.connectionsPerHostMax)
                    && multi.set(CURLMOPT_MAX_TOTAL_CONNECTIONS, configuration.connectionsMax)
                    && multi.set(CURLMOPT_MAXCONNECTS, configuration.connectionsMax)
                    && multi.set(CURLMOPT_MAX_CONCURRENT_STREAMS, configuration.streamsMax)
            },
            driver: { DeliveryDriver(configuration, gate) })
        guard let loop else {
            throw DeliveryError(.noMemory, "libcurl could not be initialised")
        }
        self.gate = gate
        self.loop = loop
    }

    deinit {
        close()
    }

    /// Sends a request, unless as many are under way as may be.
    ///
    /// - Returns: Whether it was accepted; if not, `receiver` is not called.
    package func submit(
        _ request: DeliveryRequest, tag: UInt64, receiver: any DeliveryReceiver
    ) -> Bool {
        gate.admit(DeliveryOrder(request: request, tag: tag, receiver: receiver), to: loop)
    }

    /// Sends a request and waits for its answer; before that, for room in the engine. A task that
    /// is cancelled ends its request.
    ///
    /// - Throws: ``DeliveryError``.
    package func send(_ request: DeliveryRequest) async throws(DeliveryError) -> DeliveryAnswer {
        let call = DeliveryCall(request)
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                call.begin(continuation)
                gate.admit(call, to: loop)
            }
        } onCancel: {
            gate.cancel(call, in: loop)
        }
        return try outcome.get()
    }

    /// Refuses new requests, lets those end that were accepted or wait, and closes. Each has its
    /// deadline, so this ends too; a task that is cancelled ends them all.
    package func drain() async {
        await withTaskCancellationHandler {
            await gate.drain()
            close()
            await gate.end()
        } onCancel: {
            close()
        }
    }

    /// Ends every request with `closed`, and refuses new ones.
    package func close() {
        gate.close()
        loop.stop()
    }

    /// How much the engine holds now.
    package var figures: DeliveryFigures { gate.figures }
}

/// How much an engine holds.
package struct DeliveryFigures: Sendable, Hashable {
    /// Requests that were accepted and have not ended.
    package var underWay = 0
    /// Callers that wait for room.
    package var waiting = 0
    /// Easy handles of libcurl: no more than there were requests under way at once.
    package var handles = 0
    /// Sockets.
    package var connections = 0

    /// Nothing.
    package init() {}
}
