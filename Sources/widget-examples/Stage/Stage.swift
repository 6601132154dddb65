import Foundation

/// Lets things happen, prints who was told what and what is shown then, and compares.
struct Stage {
    /// What is expected of one step.
    struct Expectation {
        /// What each device is told, by its name; those that are not here are told nothing.
        var told: [String: Set<String>] = [:]
        /// What widgets show then, by device and widget; all others show what they did.
        var shows: [String: [String: String]] = [:]
    }

    /// How long a device may take to be told and rebuild.
    static let patience = Duration.seconds(15)
    /// How long nothing may follow that was not called for.
    private static let quiet = Duration.milliseconds(400)

    private let devices: [Device]
    /// Prints a line.
    private let print: @Sendable (String) -> Void
    private var shown: [String: [String: String]] = [:]
    /// Whether everything was as expected so far.
    private(set) var isRight = true

    init(devices: [Device], print: @escaping @Sendable (String) -> Void) {
        self.devices = devices
        self.print = print
    }

    /// Waits until `condition` holds; `false` when it does not in time.
    static func wait(until condition: () async -> Bool) async -> Bool {
        let deadline = ContinuousClock.now + patience
        while !(await condition()) {
            guard ContinuousClock.now < deadline else { return false }
            try? await Task.sleep(for: .milliseconds(10))
        }
        return true
    }

    /// Prints and remembers whether something is as it has to be.
    mutating func check(_ holds: Bool, _ line: String) {
        print("    \(holds ? "✓" : "✗") \(line)")
        if !holds { isRight = false }
    }

    /// Lets something happen, and checks that it comes to this and to nothing else.
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
        _ = await Self.wait {
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
            // A fault is told once, not again in each step that follows.
            self.shown[device.name] = isShown
        }
    }

    private mutating func report(
        _ device: Device, _ isShown: [String: String], _ expected: Expectation
    ) {
        let told = device.told
        let isAsTold = told == expected.told[device.name, default: []]
        let said = told.isEmpty ? "nothing" : told.sorted().joined(separator: "; ")
        check(isAsTold, "\(padded(device.name)) is told: \(said)")
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
