import Foundation
import GatewayCore
import GatewayDocuments
import GatewayEngine
import GatewayOperations
import GatewaySigning
import GatewayStorage
import WidgetModel

/// The dashboard's page of the gateway itself, which contains no secrets.
package struct SystemPage: Sendable {
    /// The part of the configuration in force that is shown.
    package struct Configuration: Sendable {
        /// The options by name, without keys and their files.
        let options: JSONValue
        let limits: JSONValue
        /// The address of the TLS port.
        let listen: Address
        let admin: Address
        let isDevelopment: Bool
    }

    let page: MetricsPage
    let configuration: @Sendable () -> Configuration

    var document: SystemStatus {
        let configuration = configuration()
        var status = SystemStatus()
        status.time = timestamp(page.engine.clock.wallMilliseconds())
        status.version = BuildInformation.document
        status.keys = page.keys.standings.map(\.document)
        status.certificateEnds = Self.text(page.certificateEnds())
        status.pushCertificates = page.pushCertificateEnds().sorted { $0.key < $1.key }.map {
            var certificate = SystemStatus.PushCertificate()
            (certificate.app, certificate.ends) = ($0.key, Self.text($0.value))
            return certificate
        }
        status.configuration = configuration.options
        status.limits = configuration.limits
        status.node = node(configuration)
        status.log = log
        status.windows = (page.engine.loops.all.first?.figures.windows ?? []).map {
            var window = SystemStatus.Window()
            (window.app, window.floor) = ($0.app, $0.floor)
            (window.keys, window.keysMax) = ($0.keys, $0.keysMax)
            return window
        }
        return status
    }

    private static func text(_ date: Date) -> String {
        timestamp(Int64(date.timeIntervalSince1970) * 1000)
    }

    private func node(_ configuration: Configuration) -> SystemStatus.Node {
        let process = ProcessStats()
        var node = SystemStatus.Node()
        node.listen = configuration.listen.description
        node.admin = configuration.admin.description
        node.adminIsTLS = !configuration.admin.isLoopback
        node.development = configuration.isDevelopment
        node.positions = page.engine.loops.all.map(\.position)
        node.streams = page.engine.loops.openStreams
        node.started = timestamp(Int64(process.startSeconds * 1000))
        node.cpuSeconds = process.cpuSeconds
        node.residentBytes = process.residentBytes
        node.openFiles = process.openFiles
        node.openFilesMax = process.openFilesMax
        return node
    }

    private var log: SystemStatus.Log {
        let figures = page.engine.store.figures
        var log = SystemStatus.Log()
        (log.head, log.floor) = (figures.head, figures.floor)
        (log.commits, log.failedCommits) = (figures.commits, figures.failedCommits)
        log.refusedJobs = figures.refusedJobs
        log.slowestCommitSeconds = figures.slowestCommitSeconds
        (log.databaseBytes, log.walBytes) = (figures.databaseBytes, figures.walBytes)
        return log
    }
}

extension KeyService.Status {
    fileprivate var document: SystemStatus.Key {
        var key = SystemStatus.Key()
        (key.use, key.kid, key.algorithm) = (use, kid, algorithm)
        switch state {
        case .published(let from): (key.state, key.until) = ("published", timestamp(from * 1000))
        case .signing(let since): (key.state, key.since) = ("signing", timestamp(since * 1000))
        case .retiring(let until): (key.state, key.until) = ("retiring", timestamp(until * 1000))
        }
        return key
    }
}
