/// A scenario.
enum ScenarioName: String, CaseIterable, Sendable {
    case fanout, latency, handshake, burst, slow, storm, accept, register, decide, push, costs,
        cluster

    /// The default: all that needs nothing but this machine.
    static let usual = allCases.filter { ![.push, .costs, .cluster].contains($0) }

    /// A description in a line of at most 64 characters.
    var abstract: String {
        switch self {
        case .fanout: "streams of one key; each change waits until all got the last"
        case .latency: "the same streams at a fixed rate, timed from the schedule"
        case .handshake: "full and resumed TLS handshakes without a request"
        case .burst: "50 changes: one at a time, in one batch, as 50 pipelined posts"
        case .slow: "streams alongside others that never read and must be closed"
        case .storm: "all streams reconnect from an old cursor after a restart"
        case .accept: "changes accepted with 202, singly and in batches of 100"
        case .register: "registrations of clients with 4 widgets"
        case .decide: "the core alone: changes decided for a million widgets"
        case .push: "pushes by the gateway's pool and by h2load; not part of all"
        case .cluster: "1 to 3 nodes on one PostgreSQL, and SQLite; not part of all"
        case .costs: "instructions and allocations, by valgrind; not part of all"
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
