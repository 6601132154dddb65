import Foundation
import Testing
import WidgetModel

@testable import TimelineRuntime
@testable import WidgetViews

private struct DrawnView: View {
    @Environment(\.widgetRenderingMode) var mode
    @Environment(\.colorScheme) var scheme
    @Environment(\.isLuminanceReduced) var isDim
    @Environment(\.location) var location

    var body: some View {
        Text("\(mode) \(scheme) \(isDim) \(location)")
        Text("secret").privacySensitive()
    }
}

/// Tests for "Understand the role of app intents": wherever a system shows a widget, it shows the
/// archived drawing.
@Suite struct DrawnContextsTests {
    /// For every family on every device, in every state, the archived drawing equals a fresh one.
    @Test func whereverAWidgetCanBeThereIsADrawing() async throws {
        let rules = WidgetContextRules()
        var shown = 0
        for family in WidgetFamily.allCases {
            let info = WidgetInfo(kind: "k", family: family)
            let runtime = try WidgetDeclarations([
                StaticConfiguration(kind: "k", provider: TapProvider(list: "")) { _ in DrawnView() }
            ])
            let timeline = try await runtime.timeline(of: info)
            for platform in WidgetDevice.Platform.allCases {
                let device = WidgetDevice(platform)
                let archive = try runtime.archive(timeline, of: info, on: device)
                let placeholder = try runtime.archivedPlaceholder(of: info, on: device)
                for environment in everyEnvironment(of: info, on: device, rules) {
                    shown += 1
                    let isPlaceholder = environment.redactionReasons.contains(.placeholder)
                    let node = (isPlaceholder ? placeholder : archive).node(
                        at: .now, in: environment)
                    #expect(node == environment.draw { DrawnView() }, "\(environment)")
                    #expect(placeholder.node(at: .now, in: environment) != nil)
                }
            }
        }
        #expect(shown > 500)
    }

    private func everyEnvironment(
        of info: WidgetInfo, on device: WidgetDevice, _ rules: WidgetContextRules
    ) -> Set<WidgetEnvironment> {
        var environments: Set<WidgetEnvironment> = []
        let places = WidgetContextTable.places[info.family] ?? []
        for location in Set(places.filter { $0.platform == device.platform }.map(\.location)) {
            for lock in DeviceLock.allCases {
                for bits in 0..<32 {
                    let modes = WidgetRenderingMode.allCases
                    for mode in [nil, modes[0], modes[1], modes[2]] {
                        let state = WidgetDeviceState(
                            lock: lock, isAlwaysOn: bits & 1 > 0, isLowLight: bits & 2 > 0,
                            colorScheme: bits & 4 > 0 ? .dark : .light, renderingMode: mode,
                            sensitiveContent: SensitiveContentSettings(
                                showsOnLockScreen: bits & 8 > 0, showsInAlwaysOn: bits & 16 > 0,
                                hiddenComplications: bits & 8 > 0 ? .all : .kinds([])))
                        if let environment = try? rules.environment(
                            of: info, with: WidgetTraits(), at: location, on: device,
                            state: state)
                        {
                            environments.insert(environment)
                        }
                    }
                }
            }
        }
        return environments
    }
}
