import GatewayCore
import GatewayOperations
import WidgetModel

/// The settings of the engine, fixed from its start to its end.
package struct EngineConfiguration: Sendable {
    package let limits: Limits
    /// The limits on data kept in memory.
    package let coreLimits: CoreLimits
    /// The limits on data kept for one app.
    let quota: AppQuota
    /// The rate of new push addresses of one client.
    let pushAddresses: TokenRate
    let streams: StreamSettings
    /// The maximum number of streams and waiting polls per client.
    package let streamsPerClient: Int
    /// The push settings at the start.
    package let push: PushScheduler.Terms
}

extension GatewayConfiguration {
    /// The part that configures the engine.
    package var engine: EngineConfiguration {
        EngineConfiguration(
            limits: limits, coreLimits: coreLimits, quota: quota,
            pushAddresses: rates.pushAddresses, streams: streams,
            streamsPerClient: streamsPerClient, push: push.terms)
    }
}
