import Foundation
import TimelineClient
import WidgetModel

/// Posts the demonstration's changes, prints who was told what, and compares.
struct DemoStage: Sendable {
    let devices: [DemoDevice]
    let backend: GatewayService
    let run: String
    private let patience = Duration.seconds(15)
    /// How long nothing may follow that was not called for.
    private let quiet = Duration.milliseconds(400)

    init(devices: [DemoDevice], backend: GatewayService, run: String) {
        self.devices = devices
        self.backend = backend
        self.run = run
    }

    /// Waits until `condition` holds; `false` when it does not in time.
    func wait(_ time: Duration, until condition: () async -> Bool) async -> Bool {
        let deadline = ContinuousClock.now + time
        while !(await condition()) {
            guard ContinuousClock.now < deadline else { return false }
            try? await Task.sleep(for: .milliseconds(10))
        }
        return true
    }

    /// Posts one change and checks that each device, by id, was told and rebuilt this and nothing
    /// else.
    func step(
        _ title: String, _ change: Change, told: [String: [String]], rebuilt: [String: [String]]
    ) async throws -> Bool {
        for device in devices { device.forget() }
        let event = CloudEvent(
            source: "/demo/\(run)", id: UUID().uuidString, change: change)
        let started = ContinuousClock.now
        do throws(GatewayFailure) {
            _ = try await backend.json(
                "POST", backend.base + "/changes", body: event.json,
                contentType: "application/cloudevents+json")
        } catch {
            throw Terminal.fail(error, as: .text)
        }
        Terminal.print("\n→ \(title)")
        let devices = devices
        let isComplete = {
            devices.allSatisfy { device in
                device.told.sorted() == (told[device.id] ?? []).sorted()
                    && device.rebuilt.sorted() == (rebuilt[device.id] ?? []).sorted()
            }
        }
        _ = await wait(patience, until: isComplete)
        let time = ContinuousClock.now - started
        try? await Task.sleep(for: quiet)
        let isRight = isComplete()
        for device in devices {
            let ok =
                device.told.sorted() == (told[device.id] ?? []).sorted()
                && device.rebuilt.sorted() == (rebuilt[device.id] ?? []).sorted()
            let said = device.told.isEmpty ? ["nothing"] : device.told
            var line = "    \(ok ? "✓" : "✗") \(padded(device.name)) told: "
            line += said.joined(separator: "; ")
            if !device.rebuilt.isEmpty {
                line += "  →  rebuilt: " + device.rebuilt.sorted().joined(separator: "; ")
            }
            Terminal.print(line)
        }
        if isRight, !told.isEmpty {
            let milliseconds = Double(time.components.attoseconds) / 1e15
            Terminal.print("      in \(Int(milliseconds.rounded())) ms, signatures verified")
        }
        return isRight
    }

    /// A device and what it shows.
    func line(_ device: DemoDevice, _ lines: [String]) -> String {
        "    \(padded(device.name)) \(lines.sorted().joined(separator: "; "))"
    }

    private func padded(_ name: String) -> String {
        name + String(repeating: " ", count: max(0, 7 - name.count))
    }
}
