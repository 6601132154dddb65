import GatewayCore
import GatewayTLS
import Logging
import NIOCore

package struct EngineServices: Sendable {
    package let signer: NotificationSigner
    package let metrics: GatewayMetrics
    package let tlsSettings: TLSServerSettings
    /// One for each shard.
    package let eventLoops: [any EventLoop]
    package let clock: GatewayClock
    /// `nil` where nothing is traced.
    package let tracing: GatewayTracing?
    package let logger: Logger
    package let pushLogger: Logger
    /// Where the ends of streams are logged that clients cause; `nil` for nowhere.
    package let sampledLog: SampledLog?

    package init(
        signer: NotificationSigner, metrics: GatewayMetrics, tlsSettings: TLSServerSettings,
        eventLoops: [any EventLoop], clock: GatewayClock, tracing: GatewayTracing? = nil,
        logger: Logger, pushLogger: Logger? = nil, sampledLog: SampledLog? = nil
    ) {
        self.signer = signer
        self.metrics = metrics
        self.tlsSettings = tlsSettings
        self.eventLoops = eventLoops
        self.clock = clock
        self.tracing = tracing
        self.logger = logger
        self.pushLogger = pushLogger ?? logger
        self.sampledLog = sampledLog
    }
}
