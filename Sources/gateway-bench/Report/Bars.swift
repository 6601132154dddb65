/// The bounds of a full run's figures.
enum Bars {
    /// The bound of a figure; `nil` for none.
    static func bar(_ scenario: ScenarioName, _ name: String) -> Bar? {
        switch (scenario, name) {
        case (.fanout, "memory per idle stream"): .atMost(17_000.0 / 1_024)
        case (.storm, "reconnect / plain request"): .atMost(1.15)
        case (.accept, "changes alone"): .atLeast(10_000)
        case (.accept, "changes in batches of 100"): .atLeast(50_000)
        case (.register, "registrations"): .atLeast(5_000)
        case (.decide, "decisions, 1000000 widgets"): .atLeast(500_000)
        case (.decide, "index per widget, 1000000 widgets"): .atMost(120)
        case (.cluster, "changes in batches of 100, PostgreSQL"): .atLeast(25_000)
        case (.cluster, "p99 of a post, PostgreSQL / SQLite"): .atMost(4)
        case (.cluster, _) where name.hasSuffix("nodes / 1 node"): .atMost(1.25)
        case (.costs, _): cost(name)
        default: nil
        }
    }

    /// Bounds of what `costs` counts, about a tenth above what was counted on x86-64 with Swift 6.3
    /// and Debian 12's OpenSSL 3.0. Deploy/check-costs fails where one is missed.
    private static func cost(_ name: String) -> Bar? {
        switch name {
        case "instructions per delivery": .atMost(7_500)
        case "own instructions per delivery": .atMost(1_480)
        case "allocations per delivery", "own allocations per delivery": .atMost(0.05)
        case "instructions per decision": .atMost(9_400)
        case "allocations per decision": .atMost(3.9)
        default: nil
        }
    }
}
