import GatewaySigning
import Synchronization
import TimelineGatewayClient
import TimelineRuntime
import WidgetModel

/// A gateway in memory that answers registrations, streams and acknowledgements as a test decides.
final class ScriptedGateway: GatewayConnection {
    struct State {
        var head = cursor(10)
        var knowsClient = false
        var registrations: [JSONValue] = []
        /// The current registration.
        var inForce: JSONValue = .null
        /// The methods of the registration requests.
        var methods: [String] = []
        var acknowledgements: [JSONValue] = []
        var resumptions: [String?] = []
        var statuses: [Int] = []
        var retryAfter: String?
        var keyRequests = 0
        var polled: JSONValue = .null
        /// The answers to polls since these cursors, in place of ``polled``.
        var polledSince: [String: JSONValue] = [:]
        var stream: AsyncStream<[UInt8]>.Continuation?

        /// The timelines reported as rebuilt. A busy machine builds them one after the other, so
        /// several acknowledgements may report what a single one reports on an idle machine.
        var rebuilt: [JSONValue] { reported("rebuilt") }
        var failed: [JSONValue] { reported("failed") }
        /// The kinds reported as having the registered recommendation set.
        var confirmedSets: [JSONValue] { reported("recommendations") }

        /// The cursor of the last acknowledgement. A build that ends before the id of its
        /// notification is read is acknowledged with the previous cursor, and the id afterwards.
        var acknowledgedCursor: String? {
            acknowledgements.last?.objectValue?["cursor"]?.stringValue
        }

        private func reported(_ member: String) -> [JSONValue] {
            acknowledgements.flatMap { $0.objectValue?[member]?.arrayValue ?? [] }
        }

        /// Whether a stream is open and every registered widget was built once.
        var isBuilt: Bool {
            let registered = inForce.objectValue?["widgets"]?.arrayValue?.count
            return stream != nil && registered.map { rebuilt.count >= $0 } == true
        }

        /// The digest of the current registration.
        var digest: String { "d\(inForce.hashValue)" }

        /// Whether a request names another registration than the current one.
        func isMismatch(_ request: GatewayRequest) -> Bool {
            request.headers.contains { $0.name == "timeline-registration" && $0.value != digest }
        }

        var mismatch: JSONValue {
            [
                "type": .string(ProblemDetails.typePrefix + "registration-mismatch"),
                "title": "mismatch", "digest": .string(digest),
            ]
        }
    }

    let state = Mutex(State())
    let keys: JWKSet
    private let signer: JWSSigner

    init() throws {
        let key = try SigningKey()
        keys = JWKSet([key.publicKey])
        signer = .reloads(key)
    }

    func read<Value: Sendable>(_ value: (inout State) -> Value) -> Value {
        state.withLock { value(&$0) }
    }

    /// Waits until `condition` holds. The time limit of the test bounds the wait.
    func wait(until condition: @Sendable (State) -> Bool) async {
        while true {
            let isMet = state.withLock { condition($0) }
            // When its time is over, the test goes on with the state at that point.
            if isMet || Task.isCancelled { return }
            await Task.yield()
        }
    }

    /// Runs a client while `body` watches it, then stops it. If `waits`, `body` begins when every
    /// widget is built.
    func running(
        _ client: TimelineClient, waits: Bool = true, _ body: () async throws -> Void
    ) async throws {
        let run = Task { await client.run() }
        defer { run.cancel() }
        if waits { await wait { $0.isBuilt } }
        try await body()
        run.cancel()
        await run.value
    }

    func signed(_ claims: ReloadNotification) throws -> String {
        String(decoding: try signer.sign(payload: claims.json.serialized), as: UTF8.self)
    }

    /// Sends a block of text over the open stream.
    func tell(_ text: String) {
        state.withLock { _ = $0.stream?.yield(Array(text.utf8)) }
    }

    func tell(_ claims: ReloadNotification, id: Cursor?) throws {
        let notification = Array(try signed(claims).utf8)
        let block = EventStreamEncoder.reload(id: id?.text, notification: notification)
        tell(String(decoding: block, as: UTF8.self))
    }

    func closeStream() {
        state.withLock { state in
            state.stream?.finish()
            state.stream = nil
        }
    }

    func send(_ request: GatewayRequest) async throws(ConnectionError) -> GatewayResponse {
        let body = request.body.flatMap { try? JSONValue(parsing: $0) } ?? .null
        let (status, answer) = state.withLock { state -> (Int, JSONValue) in
            if request.target == "/.well-known/jwks.json" {
                state.keyRequests += 1
                return (200, keys.json)
            }
            if let status = state.statuses.first {
                state.statuses.removeFirst()
                return (status, .null)
            }
            if request.method == "PATCH", !state.knowsClient { return (404, .null) }
            if request.method == "PATCH" || request.method == "PUT" {
                state.methods.append(request.method)
                state.registrations.append(body)
                state.knowsClient = true
                state.inForce =
                    request.method == "PUT" ? body : state.inForce.merging(patch: body)
                let cursor = JSONValue.string(state.head.text)
                return (201, ["cursor": cursor, "digest": .string(state.digest)])
            }
            guard state.knowsClient else { return (404, .null) }
            if request.method == "GET", !request.target.contains("/reloads") {
                var shown = state.inForce.objectValue ?? JSONObject()
                shown["digest"] = .string(state.digest)
                return (200, .object(shown))
            }
            if state.isMismatch(request) { return (409, state.mismatch) }
            if request.method == "GET" {
                let own = state.polledSince.first { request.target.contains("since=\($0.key)") }
                return (200, own?.value ?? state.polled)
            }
            state.acknowledgements.append(body)
            return (204, .null)
        }
        var fields = Self.fields
        if let seconds = state.withLock({ $0.retryAfter }) {
            fields.append((name: "Retry-After", value: seconds))
        }
        return GatewayResponse(
            head: GatewayResponseHead(status: status, headers: fields),
            body: answer == .null ? [] : answer.serialized)
    }

    func stream(_ request: GatewayRequest) async throws(ConnectionError) -> GatewayStream {
        let (chunks, continuation) = AsyncStream.makeStream(of: [UInt8].self)
        let since = request.headers.first { $0.name == "last-event-id" }?.value
        let (status, refusal) = state.withLock { state -> (Int, JSONValue) in
            state.resumptions.append(since)
            if let status = state.statuses.first {
                state.statuses.removeFirst()
                return (status, .null)
            }
            guard state.knowsClient else { return (404, .null) }
            if state.isMismatch(request) { return (409, state.mismatch) }
            state.stream = continuation
            return (200, .null)
        }
        if status != 200 {
            if refusal != .null { continuation.yield(refusal.serialized) }
            continuation.finish()
        }
        var fields = Self.fields
        fields.append((name: "Content-Type", value: "text/event-stream"))
        if let since { fields.append((name: "Timeline-Cursor", value: since)) }
        let pieces = Mutex(chunks)
        let next = { @Sendable () async throws(ConnectionError) -> [UInt8]? in
            var iterator = pieces.withLock { $0 }.makeAsyncIterator()
            let piece = await iterator.next()
            if Task.isCancelled { throw ConnectionError(.cancelled, "cancelled") }
            return piece
        }
        return GatewayStream(
            head: GatewayResponseHead(status: status, headers: fields),
            body: GatewayBody(next: next))
    }

    private static let fields = [(name: "Date", value: "Sat, 21 Nov 2026 06:32:54 GMT")]
    /// The time in `fields`, in seconds after 1970.
    static let seconds: Int64 = 1_795_242_774
}

/// Returns the code of the connection error that `body` throws, or `nil` when it throws none.
func connectionCode(_ body: () async throws -> Void) async -> ConnectionError.Code? {
    do {
        try await body()
        return nil
    } catch {
        return (error as? ConnectionError)?.code
    }
}
