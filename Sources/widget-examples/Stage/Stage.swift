import Foundation

/// Runs the steps of the demonstration, prints notifications and content, and compares them with
/// expectations.
struct Stage {
    /// The expected results of one step.
    struct Expectation {
        /// The expected notifications by device name; devices that are not listed expect none.
        var told: [String: Set<String>] = [:]
        /// The expected content by device and widget; all others must be unchanged.
        var shows: [String: [String: String]] = [:]
    }

    /// The time limit for a device to receive a notification and rebuild.
    private let patience: Duration
    /// The time without further notifications after which a step is complete.
    private static let quiet = Duration.milliseconds(400)

    private let devices: [Device]
    private let print: @Sendable (String) -> Void
    private var shown: [String: [String: String]] = [:]
    /// Whether all results were as expected so far.
    private(set) var isRight = true

    init(
        devices: [Device], patience: Duration, print: @escaping @Sendable (String) -> Void
    ) {
        self.devices = devices
        self.patience = patience
        self.print = print
    }

    /// Waits until `condition` is true; returns `false` after the time limit.
    func wait(until condition: () async -> Bool) async -> Bool {
        let deadline = ContinuousClock.now + patience
        while !(await condition()) {
            guard ContinuousClock.now < deadline else { return false }
            try? await Task.sleep(for: .milliseconds(10))
        }
        return true
    }

    /// Prints a line with a mark for success or failure, and records a failure.
    mutating func check(_ holds: Bool, _ line: String) {
        print("    \(holds ? "✓" : "✗") \(line)")
        if !holds { isRight = false }
    }

    /// Runs a step, and checks that it has exactly the expected results.
    mutating func step(
        _ title: String, _ expected: Expectation, act: () async throws -> Void
    ) async throws {
        for device in devices { device.forget() }
        for (name, widgets) in expected.shows {
            shown[name, default: [:]].merge(widgets) { $1 }
        }
        print("\n→ \(title)")
        try await act()
        let (devices, shown) = (devices, shown)
        _ = await wait {
            for device in devices {
                guard device.told == expected.told[device.name, default: []],
                    await device.shown() == shown[device.name]
                else { return false }
            }
            return true
        }
        try? await Task.sleep(for: Self.quiet)
        for device in devices {
            let isShown = await device.shown()
            report(device, isShown, expected)
            // A wrong result is reported once, not again in each following step.
            self.shown[device.name] = isShown
        }
    }

    private mutating func report(
        _ device: Device, _ isShown: [String: String], _ expected: Expectation
    ) {
        let told = device.told
        let isAsTold = told == expected.told[device.name, default: []]
        let said = told.isEmpty ? "nothing" : told.sorted().joined(separator: "; ")
        check(isAsTold, "\(padded(device.name)) notified: \(said)")
        if !isAsTold { print("        not \(expected.told[device.name, default: []].sorted())") }
        for (widget, text) in isShown.sorted(by: { $0.key < $1.key }) {
            let wanted = shown[device.name]?[widget]
            guard text != wanted || expected.shows[device.name]?[widget] != nil else { continue }
            check(text == wanted, "\(padded("")) \(widget) shows: \(text)")
            if text != wanted { print("        not \(wanted ?? "anything")") }
        }
    }

    private func padded(_ name: String) -> String {
        name + String(repeating: " ", count: max(0, 7 - name.count))
    }
}
