import GatewayTestSupport

/// A client of the campaign: its widgets, its cursor, and the way it listens.
final class FaultClient: Sendable {
    /// The way it receives notifications.
    enum Channel: Sendable {
        case stream(TestHTTPVersion)
        case poll(TestHTTPVersion)
    }

    struct State: Sendable {
        var placement: Game.Placement
        var cursor = ""
        /// The sequence of the cursor.
        var watermark: UInt64 = 0
        /// Counts its registrations.
        var number = 0
        /// Whether its last registration had no answer.
        var isUnsure = false
    }

    let name: String
    let token: String
    let channel: Channel
    let state: TestHTTPMonitor<State>

    init(name: String, token: String, channel: Channel, placement: Game.Placement) {
        self.name = name
        self.token = token
        self.channel = channel
        state = TestHTTPMonitor(State(placement: placement))
    }

    var cursor: String { state.update { $0.cursor } }
    var watermark: UInt64 { state.update { $0.watermark } }
    var placement: Game.Placement { state.update { $0.placement } }
    var path: String { "/v1/apps/\(Game.app)/clients/\(name)" }
}
