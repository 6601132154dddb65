/// A scenario.
enum ScenarioName: String, CaseIterable, Sendable {
    case fanout, latency, handshake, burst, slow, storm, accept, register, decide, push, costs

    /// The default: all that needs nothing but this machine.
    static let usual = allCases.filter { $0 != .push && $0 != .costs }

    /// A description in a line of at most 64 characters.
    var abstract: String {
        switch self {
        case .fanout: "streams of one key; the next change when all have the last"
        case .latency: "the same streams at a fixed rate, timed from the schedule"
        case .handshake: "full and resumed TLS handshakes without a request"
        case .burst: "50 changes: one at a time, in one batch, as 50 pipelined posts"
        case .slow: "streams beside others that never read and have to be closed"
        case .storm: "all streams reconnect from an old cursor after a restart"
        case .accept: "changes answered 202, alone and in batches of 100"
        case .register: "registrations of clients with 4 widgets"
        case .decide: "the core alone: changes decided at a million widgets"
        case .push: "pushes by the gateway's pool and by h2load; not one of all"
        case .costs: "instructions and allocations, by valgrind; not one of all"
        }
    }

    /// Whether the scenario loads a gateway.
    var needsGateway: Bool { self != .push }

    /// Whether its streams can be HTTP/2 connections.
    var canBeHTTP2: Bool { self == .fanout || self == .latency }

    /// Name and abstract, for a list of all.
    var help: String {
        let gap = String(repeating: " ", count: max(1, 11 - rawValue.count))
        return "  " + rawValue + gap + abstract
    }
}
