import Foundation
import GatewayDocuments
import GatewayOperations
import GatewayTelemetry
import Logging
import Synchronization

/// The gateway's log: structured lines on standard error, with masked secrets and levels that can
/// be changed at run time.
package final class GatewayLog: Sendable {
    private struct State {
        var format: LogFormat
        var levels: LogLevels
    }

    private let state: Mutex<State>
    private let write: @Sendable (String) -> Void

    /// - Parameter write: Receives each line with its newline. Default: standard error.
    package init(
        _ format: LogFormat, _ levels: LogLevels,
        write: @escaping @Sendable (String) -> Void = {
            FileHandle.standardError.write(Data($0.utf8))
        }
    ) {
        state = Mutex(State(format: format, levels: levels))
        self.write = write
    }

    /// Changes the format and the levels from now on.
    package func set(_ format: LogFormat, _ levels: LogLevels) {
        state.withLock { $0 = State(format: format, levels: levels) }
    }

    package var levels: LogLevels { state.withLock { $0.levels } }

    package func logger(_ label: String) -> Logger {
        Logger(label: label, factory: { self.handler($0) })
    }

    package func handler(_ label: String) -> any LogHandler {
        Handler(log: self, label: label)
    }

    private func log(
        _ message: String, _ fields: [String: String], level: Logger.Level, label: String,
        own: Logger.Level?
    ) {
        let state = state.withLock { $0 }
        guard state.levels.lets(level, label: label, own: own, fields: fields) else { return }
        let now = Int64(Date().timeIntervalSince1970 * 1000)
        write(
            state.format.line(
                .init(
                    time: timestamp(now), level: level, label: label,
                    message: Redaction.text(message),
                    fields: fields.sorted { $0.key < $1.key }
                        .map { ($0.key, Redaction.text($0.value, ofField: $0.key)) })))
    }

    private struct Handler: LogHandler {
        let log: GatewayLog
        let label: String
        var metadata: Logger.Metadata = [:]
        /// Adds the trace to the lines of a traced request.
        var metadataProvider: Logger.MetadataProvider? = .traceContext
        /// The level set on the logger itself.
        var own: Logger.Level?

        /// The lowest level at which a record may be logged; the final decision depends on its
        /// fields.
        var logLevel: Logger.Level {
            get { log.levels.lowest(of: label, own: own) }
            set { own = newValue }
        }

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            var fields: [String: String] = [:]
            for (name, value) in metadataProvider?.get() ?? [:] { fields[name] = "\(value)" }
            for (name, value) in metadata { fields[name] = "\(value)" }
            for (name, value) in event.metadata ?? [:] { fields[name] = "\(value)" }
            log.log("\(event.message)", fields, level: event.level, label: label, own: own)
        }
    }
}
