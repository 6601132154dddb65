import CurlMulti
import Foundation
import GatewayCore
import GatewayEngine
import GatewayOperations
import GatewaySigning
import GatewayTLS
import Logging
import Synchronization
import WidgetModel

final class CurrentConfiguration: Sendable {
    private let held: Mutex<GatewayConfiguration>
    private let refused = Mutex<Faults?>(nil)

    init(_ configuration: GatewayConfiguration) {
        held = Mutex(configuration)
    }

    /// The faults of the last reload, if it was rejected.
    var refusal: Faults? { refused.withLock { $0 } }

    fileprivate func note(refusal: Faults?) {
        refused.withLock { $0 = refusal }
    }

    /// The configuration in force; options that take effect at the next start have their future
    /// values.
    var value: GatewayConfiguration { held.withLock { $0 } }

    fileprivate func replace(with configuration: GatewayConfiguration) {
        held.withLock { $0 = configuration }
    }
}

/// Applies a changed configuration to the running gateway: everything that can be changed or, if
/// the configuration has any error, nothing.
package actor ConfigurationReload {
    /// The parts of a running gateway that accept changes.
    struct Parts: Sendable {
        let identity: TLSIdentity
        /// The keys of session tickets, if other nodes share them.
        let ticketKeys: TicketKeys?
        let access: AccessControl
        let keys: KeyService
        let issuerKeys: IssuerKeys
        let signer: NotificationSigner
        let log: GatewayLog
        let senders: PushSenders
        /// `nil` where nothing is ever pushed.
        let push: PushLoop?
        let clients: ClientDirectory
    }

    enum Occasion: String {
        case signal = "SIGHUP"
        case request = "a request"
        case fileChange = "a file changed"

        /// Whether a person requested it, who may have fixed something that no file shows.
        var isAsked: Bool { self != .fileChange }
    }

    /// Reads the configuration as at the start of the program, or with another document in place of
    /// its file.
    package typealias Read =
        @Sendable (_ received: ReceivedConfiguration?) throws(Faults) -> GatewayConfiguration

    private let current: CurrentConfiguration
    private let read: Read
    private let parts: Parts
    private let metrics: GatewayMetrics
    private let logger: Logger
    private let now: @Sendable () -> Int64
    private var state: ConfigurationState
    /// - Parameter state: The state of the configuration in force, read before its files were.
    init(
        _ current: CurrentConfiguration, state: ConfigurationState, read: @escaping Read,
        parts: Parts, metrics: GatewayMetrics, logger: Logger, now: @escaping @Sendable () -> Int64
    ) {
        self.current = current
        self.read = read
        self.parts = parts
        self.metrics = metrics
        self.logger = logger
        self.now = now
        self.state = state
    }

    /// Reads everything again, applies the changes that are possible and returns all changes.
    /// Throws ``Faults`` with all errors; then nothing is applied.
    func reload(_ occasion: Occasion) throws(Faults) -> [ConfigurationChange] {
        do throws(Faults) {
            let changes = try takeOver(isAsked: occasion.isAsked)
            if current.refusal != nil { logger.notice("the configuration is valid again") }
            current.note(refusal: nil)
            metrics.reloaded(changes.isEmpty ? "unchanged" : "applied")
            for change in changes {
                logger.notice(
                    "the configuration changed",
                    metadata: [
                        "option": "\(change.key)", "occasion": "\(occasion.rawValue)",
                        "takesEffect": change.isLive ? "now" : "at the next start",
                    ])
            }
            return changes
        } catch {
            metrics.reloaded("refused")
            // A file that stays invalid is reported once.
            if error != current.refusal {
                logger.error(
                    "the changed configuration is invalid; the old one stays in force",
                    metadata: ["faults": "\(error)", "occasion": "\(occasion.rawValue)"])
            }
            current.note(refusal: error)
            throw error
        }
    }

    /// Returns the changes that another document would cause in place of the file. Throws
    /// ``Faults`` with all errors of the document.
    func changes(to document: [UInt8]) throws(Faults) -> [ConfigurationChange] {
        let received = ReceivedConfiguration(document, comparedWith: current.value)
        return state.changes(
            to: ConfigurationState(try read(received), readable: received.readable))
    }

    /// The operations that the routes offer to operators.
    nonisolated var commands: ConfigurationCommands {
        ConfigurationCommands(
            reload: { () async throws(Faults) in try await self.reload(.request).map(\.document) },
            compare: { document async throws(Faults) in
                try await self.changes(to: document).map(\.document)
            }, documentBytesMax: ConfigurationLayers.bytesMax)
    }

    private func takeOver(isAsked: Bool) throws(Faults) -> [ConfigurationChange] {
        var configuration = try read(nil)
        try configuration.fit(openFiles: OpenFiles.raiseLimit())
        let after = ConfigurationState(configuration)
        let changes = state.changes(to: after)
        let time = now()
        // All steps that may fail precede those with visible effects.
        var context: TLSContext?
        if changes.contains(where: { $0.key.hasPrefix("tls.") }) {
            do {
                context = try configuration.tlsContext(
                    now: time, ticketKeys: parts.ticketKeys)
            } catch {
                throw error as? Faults ?? Faults("tls", "\(error)")
            }
        }
        var pushes: PushSenders.Generation?
        var files: PushFiles?
        if isAsked || changes.contains(where: \.isOfPushes) {
            let read = try PushFiles(configuration.push)
            pushes = try parts.senders.next(configuration.push, read)
            files = read
        }
        do throws(SigningError) {
            if try parts.keys.advance(now: time, hasWebhooks: configuration.push.isActive) {
                parts.signer.use(parts.keys.notificationSigner)
            }
        } catch {
            throw Faults("data", "the key rings cannot be read: \(error.message)")
        }
        if changes.contains(where: { $0.key.hasPrefix("issuer") }) {
            do throws(CurlError) {
                try parts.issuerKeys.use(configuration)
            } catch {
                throw Faults("issuers", error.message)
            }
        }
        if let files {
            parts.clients.permit(webhooks: files.webhookRanges, services: files.serviceRanges)
        }
        if let pushes, let push = parts.push {
            // In this order: pushes released by `configure` go through the new senders.
            parts.senders.use(pushes, resumes: isAsked)
            push.configure(
                configuration.push.terms, mended: pushes.mended, liftsStops: isAsked)
        }
        if let context {
            parts.identity.replace(with: context)
            logger.notice(
                "new connections get the new certificate",
                metadata: ["notAfter": "\(context.notAfter.formatted(.iso8601))"])
        }
        parts.log.set(configuration.logFormat, configuration.logLevels)
        current.replace(with: configuration)
        parts.access.update()
        state = after
        return changes
    }
}
