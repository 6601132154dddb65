import APNsSimulator
import GatewaySigning
import WidgetModel

/// A team's key, which makes provider tokens.
struct TeamKey: Sendable {
    let key: SigningKey
    let id: String
    let team: String

    init(id: String = "KEY1234567", team: String = "TEAM123456") throws {
        key = try SigningKey(generating: .es256)
        (self.id, self.team) = (id, team)
    }

    /// Returns the key as it is registered with the simulator.
    func registered(
        _ environments: Set<SimulatedEnvironment> = Set(SimulatedEnvironment.allCases)
    ) throws -> ProviderKey {
        try ProviderKey(id: id, team: team, key: key.publicKey, environments: environments)
    }

    /// Returns an `authorization` field.
    func bearer(issuedAt: Int64, team: String? = nil) throws -> String {
        let header = #"{"alg":"ES256","kid":"\#(id)"}"#
        let claims = #"{"iss":"\#(team ?? self.team)","iat":\#(issuedAt)}"#
        let input =
            Base64.url.string(Array(header.utf8)) + "." + Base64.url.string(Array(claims.utf8))
        return "bearer \(input).\(Base64.url.string(try key.sign(Array(input.utf8))))"
    }
}

/// A simulated APNs, one connection to it, and a push that it accepts.
struct JudgeFixture {
    static let token = String(repeating: "0a", count: 32)
    static let start = SimulatedAPNs.Moment(now: 1_000_000, wall: 1_800_000_000_000)

    let team: TeamKey
    /// The provider token of its pushes.
    let authorization: String
    var apns: SimulatedAPNs
    var moment = Self.start
    var connection = 0
    private var stream = -1
    private var pushes = 0

    init(
        certificate: Set<String>? = nil,
        _ change: (inout SimulatedAPNs.Terms) throws -> Void = { _ in }
    ) throws {
        team = try TeamKey()
        authorization = try team.bearer(issuedAt: Self.start.wall / 1_000)
        var terms = SimulatedAPNs.Terms()
        terms.keys = [try team.registered()]
        try change(&terms)
        apns = SimulatedAPNs(terms)
        connect(certificate: certificate)
    }

    /// Opens another connection, which is used from here on.
    mutating func connect(certificate: Set<String>? = nil) {
        connection = apns.opened(certificateTopics: certificate, at: moment).connection
        stream = -1
    }

    mutating func request(to token: String = Self.token) throws -> PushRequest {
        pushes += 1
        var request = PushRequest()
        request.method = "POST"
        request.path = PushRequest.devicePath + token
        request.authorization = authorization
        request.pushType = "widgets"
        request.topic = "com.mygame.push-type.widgets"
        request.id = Self.id(pushes)
        request.take(body: Array(#"{"aps":{"content-changed":true}}"#.utf8), bytesMax: 4_096)
        return request
    }

    static func id(_ number: Int) -> String {
        let digits = String(number, radix: 16)
        return "00000000-0000-4000-8000-" + String(repeating: "0", count: 12 - digits.count)
            + digits
    }

    /// Sends a request on the next stream; returns the effects.
    mutating func send(_ request: PushRequest) -> [SimulatedAPNs.Effect] {
        stream += 2
        var effects: [SimulatedAPNs.Effect] = []
        _ = apns.requested(
            request, stream: stream, on: connection, at: moment, &effects)
        return effects
    }

    /// Returns the answer to a request; `nil` if it is not answered at once.
    mutating func answer(to request: PushRequest) -> PushAnswer? {
        for case .answer(stream: stream, let answer, id: _, idField: _) in send(request) {
            return answer
        }
        return nil
    }

    /// Sends a push that is accepted, so that further pushes are not limited as the first one is.
    mutating func warmUp() throws {
        let request = try request(to: String(repeating: "ff", count: 32))
        _ = send(request)
    }
}
