import Foundation
import Synchronization
import TimelineClient
import TimelineClientHTTP
import WidgetModel

/// One client of the demonstration, and everything that happened to it.
final class DemoDevice: Sendable {
    /// What happened to a device, in the words the demonstration prints and compares.
    private struct Log {
        var isConnected = false
        var told: [String] = []
        var rebuilt: [String] = []
        var unverified: [String] = []
        var failures: [String] = []
    }

    let name: String
    let id: String
    private let log = Mutex(Log())

    init(name: String, id: String) {
        self.name = name
        self.id = id
    }

    var isConnected: Bool { log.withLock { $0.isConnected } }
    /// What notifications named since the last ``forget()``.
    var told: [String] { log.withLock { $0.told } }
    /// What was rebuilt since then, as it shows.
    var rebuilt: [String] { log.withLock { $0.rebuilt } }
    /// Everything that went wrong since the start.
    var failures: [String] { log.withLock { $0.failures + $0.unverified } }

    /// Begins a new step.
    func forget() {
        log.withLock {
            $0.told = []
            $0.rebuilt = []
        }
    }

    /// Takes what the client reports.
    func observe(_ event: TimelineClientEvent) {
        log.withLock { log in
            switch event {
            case .registered(let warnings): log.failures += warnings.map(\.description)
            case .connected: log.isConnected = true
            case .notified(let notification): log.told += Self.names(in: notification)
            case .unverified(let failure): log.unverified.append("not verified: \(failure)")
            case .rebuilt(let widget, let timeline):
                let line = (timeline.entries.first as? LineEntry)?.line ?? "?"
                log.rebuilt.append("\(widget.family): \(line)")
            case .buildFailed(_, let reason): log.failures.append(reason)
            case .failed(let failure): log.failures.append("\(failure)")
            case .archiveFailed(let failure): log.failures.append("\(failure)")
            }
        }
    }

    private static func names(in notification: ReloadNotification) -> [String] {
        if notification.all { return ["everything"] }
        let reloads = notification.reload.map { reload in
            let values = reload.parameters.map { "\($0.name): \($0.value ?? "unset")" }
            let kind = reload.kind.split(separator: ".").last.map(String.init) ?? reload.kind
            return values.isEmpty ? kind : "\(kind) {\(values.joined(separator: ", "))}"
        }
        return reloads
            + notification.recommendations.map {
                "recommendations of \($0.split(separator: ".").last ?? "")"
            }
    }
}
