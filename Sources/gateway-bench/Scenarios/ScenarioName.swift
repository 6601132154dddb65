enum ScenarioName: String, CaseIterable, Sendable {
    case fanout, latency, storm, accept, register, decide, push, costs, cluster

    /// The default: all that needs no other program than the gateway.
    static let usual = allCases.filter { ![.costs, .cluster].contains($0) }

    /// A description in a line of at most 64 characters.
    var abstract: String {
        switch self {
        case .fanout: "streams of one key; each change waits until all got the last"
        case .latency: "the same streams at a fixed rate, timed from the schedule"
        case .storm: "all streams reconnect from an old cursor after a restart"
        case .accept: "changes accepted with 202, singly and in batches of 100"
        case .register: "registrations of clients with 4 widgets"
        case .decide: "the core alone: changes decided for a million widgets"
        case .push: "pushes to the simulated APNs, by the pool and by a gateway"
        case .cluster: "1 to 3 nodes on one PostgreSQL, and SQLite; not part of all"
        case .costs: "instructions and allocations, by valgrind; not part of all"
        }
    }

    /// Name and abstract, for a list of all.
    var help: String {
        let gap = String(repeating: " ", count: max(1, 11 - rawValue.count))
        return "  " + rawValue + gap + abstract
    }
}
