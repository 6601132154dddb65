/// A push service as a value: requests and time go in, what to send comes out.
///
/// It knows no socket. Who runs it tells it of connections, of requests and of their ends, and does
/// what it says (``Effect``), in that order.
package struct SimulatedAPNs: Sendable {
    /// How it behaves.
    package struct Terms: Sendable {
        /// The environment it plays.
        package var environment = SimulatedEnvironment.sandbox
        /// Keys whose provider tokens it takes.
        package var keys: [ProviderKey] = []
        /// What requests have to be like.
        package var rules = PushRules()
        /// Requests at a time on a connection with provider tokens until the first was taken.
        package var streamsBeforeSuccess = 1
        /// Requests at a time after that.
        package var streamsMax = 1_000
        /// From `iat` to the end of a provider token, in seconds.
        package var providerTokenAgeMax: Int64 = 3_600
        /// From one provider token to the next on a connection, in milliseconds.
        package var providerTokenUseMin: Int64 = 1_200_000
        /// What goes wrong now and then; the shares add up.
        package var faults: [PushFault] = []
        /// Faults, and the ids it makes, follow from it.
        package var seed: UInt64 = 1
        /// Pushes whose `apns-id` is remembered.
        package var idsMax = 1_000_000

        /// A sandbox without keys and faults.
        package init() {}
    }

    /// When something happens.
    package struct Moment: Sendable, Hashable {
        /// Monotonic milliseconds.
        package var now: Int64
        /// Milliseconds since 1970.
        package var wall: Int64

        /// A moment.
        package init(now: Int64, wall: Int64) {
            self.now = now
            self.wall = wall
        }
    }

    /// What is to be sent or done on a connection.
    package enum Effect: Sendable, Hashable {
        /// SETTINGS with SETTINGS_MAX_CONCURRENT_STREAMS.
        case settings(streamsMax: Int)
        /// HEADERS and DATA that end a stream.
        case answer(stream: Int, PushAnswer, id: PushID)
        /// RST_STREAM with REFUSED_STREAM or INTERNAL_ERROR.
        case reset(stream: Int, isRefused: Bool)
        /// GOAWAY with the last stream that is looked at, and a JSON body with a reason.
        case goAway(lastStream: Int, reason: String)
        /// ``SimulatedAPNs/waited(_:on:at:_:)`` is to be called after so many milliseconds.
        case wait(stream: Int, milliseconds: Int)
        /// The connection is closed in order, once no request is half there.
        case close
        /// The connection is reset.
        case cut
    }

    /// What was decided about a request, for who watches.
    package struct Decision: Sendable, Hashable {
        /// The request.
        package let request: PushRequest
        /// What becomes of it.
        package let behaviour: PushBehaviour
    }

    /// A connection.
    struct Connection: Sendable {
        let number: Int
        /// The topics its certificate allows; `nil` when it has none.
        let certificateTopics: Set<String>?
        /// SETTINGS_MAX_CONCURRENT_STREAMS as it was sent last.
        var streamsMax: Int
        /// Whether a push was taken.
        var hasSucceeded = false
        /// The key of its first provider token.
        var keyID: String?
        /// The field with its latest provider token, and since when.
        var authorization: String?
        var authorizedSince: Int64 = 0
        /// Requests under way.
        var open: [Int: Open] = [:]
        /// After GOAWAY: the last stream that is looked at.
        var lastStream: Int?
        var isClosing = false
    }

    /// A request under way.
    struct Open: Sendable {
        let push: Push
        /// What it is answered after a wait.
        let answer: PushAnswer?
    }

    /// A push.
    struct Push: Sendable {
        let token: String
        let id: PushID
        let request: PushRequest
    }

    let terms: Terms
    let draw: FaultDraw
    var tokens: ProviderTokens
    var connections: [Int: Connection] = [:]
    var answered: AnsweredPushes
    var idsMade: UInt64 = 0
    private var lastConnection = 0
    var kept = PushRecord()

    /// A service to which nobody is connected.
    package init(_ terms: Terms) {
        self.terms = terms
        draw = FaultDraw(terms.faults, seed: terms.seed)
        tokens = ProviderTokens(
            terms.keys, environment: terms.environment, ageMax: terms.providerTokenAgeMax)
        answered = AnsweredPushes(capacity: terms.idsMax)
    }

    /// What happened so far.
    package var record: PushRecord {
        var record = kept
        record.providerTokens = tokens.valid
        return record
    }

    /// What becomes of the next pushes to a device token, one after the other; the last goes on.
    /// Rules come before it, and faults do not happen to it.
    package mutating func script(_ token: String, _ behaviours: [PushBehaviour]) {
        kept.devices[token, default: DeviceRecord()].script = behaviours
        kept.devices[token]?.isDead = false
    }

    /// Ends every connection by GOAWAY: what is under way is still answered.
    ///
    /// - Returns: What is to be done on which.
    package mutating func goAway(reason: String) -> [(connection: Int, effects: [Effect])] {
        connections.keys.sorted().map { number in
            var effects: [Effect] = []
            change(number, &effects) { _, connection, effects in
                guard connection.lastStream == nil else { return }
                let last = connection.open.keys.max() ?? 0
                connection.lastStream = last
                effects.append(.goAway(lastStream: last, reason: reason))
            }
            return (number, effects)
        }
    }

    // MARK: What happens

    /// A connection was opened.
    ///
    /// - Parameter certificateTopics: The topics of the client's certificate, which makes provider
    ///   tokens needless; `nil` without one.
    /// - Returns: Its number, and SETTINGS_MAX_CONCURRENT_STREAMS of the first SETTINGS.
    package mutating func opened(
        certificateTopics: Set<String>?, at moment: Moment
    ) -> (connection: Int, streamsMax: Int) {
        lastConnection += 1
        let streamsMax =
            certificateTopics == nil ? terms.streamsBeforeSuccess : terms.streamsMax
        connections[lastConnection] = Connection(
            number: lastConnection, certificateTopics: certificateTopics, streamsMax: streamsMax)
        kept.openConnections += 1
        if kept.connections.count < PushRecord.connectionsMax {
            kept.connections.append(moment.now)
        }
        return (lastConnection, streamsMax)
    }

    /// A connection ended, whoever ended it.
    package mutating func closed(_ connection: Int) {
        guard let known = connections.removeValue(forKey: connection) else { return }
        kept.openConnections -= 1
        // Answers may have been under way as well.
        if !known.open.isEmpty { answered.lost.insert(connection) }
    }

    /// The client gave up a request.
    package mutating func reset(stream: Int, on connection: Int, _ effects: inout [Effect]) {
        change(connection, &effects) { _, connection, _ in connection.open[stream] = nil }
    }

    /// The client opened more streams than SETTINGS allow it, and the connection ends for it.
    package mutating func overdrew(_ connection: Int) {
        if let connection = connections[connection] { kept.note(Self.excess(on: connection)) }
    }

    /// A request is there, with its whole body or with more than is allowed of it.
    ///
    /// - Returns: What was decided; `nil` when nobody looks at the request.
    package mutating func requested(
        _ request: PushRequest, stream: Int, on connection: Int, at moment: Moment,
        _ effects: inout [Effect]
    ) -> Decision? {
        var decision: Decision?
        change(connection, &effects) { apns, connection, effects in
            // What was under way when GOAWAY was sent.
            if let last = connection.lastStream, stream > last { return }
            decision = apns.decide(request, stream, on: &connection, moment, &effects)
        }
        return decision
    }

    /// The time of ``Effect/wait(stream:milliseconds:)`` is over.
    package mutating func waited(
        _ stream: Int, on connection: Int, at moment: Moment, _ effects: inout [Effect]
    ) {
        change(connection, &effects) { apns, connection, effects in
            guard let open = connection.open.removeValue(forKey: stream), let answer = open.answer
            else { return }
            apns.answer(answer, to: open.push, stream, on: &connection, moment, &effects)
        }
    }

    /// What it is to have too many requests under way on a connection.
    static func excess(on connection: Connection) -> PushViolation {
        connection.hasSucceeded || connection.certificateTopics != nil ? .tooManyStreams : .burst
    }

    private mutating func change(
        _ number: Int, _ effects: inout [Effect],
        _ body: (inout SimulatedAPNs, inout Connection, inout [Effect]) -> Void
    ) {
        // Taken out, so that nothing is copied.
        guard var connection = connections.removeValue(forKey: number) else { return }
        body(&self, &connection, &effects)
        if connection.lastStream != nil, connection.open.isEmpty, !connection.isClosing {
            connection.isClosing = true
            effects.append(.close)
        }
        connections[number] = connection
    }
}
