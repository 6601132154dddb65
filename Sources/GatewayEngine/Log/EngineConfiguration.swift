import GatewayCore
import GatewayOperations
import WidgetModel

/// The settings of the engine, fixed from its start to its end.
package struct EngineConfiguration: Sendable {
    package let limits: Limits
    /// The limits on data kept in memory.
    package var coreLimits = CoreLimits()
    /// The limits on data kept for one app.
    var quota = AppQuota()
    /// The rate of new push addresses of one client.
    var pushAddresses = RateLimits().pushAddresses
    var streams = StreamSettings()
    /// The maximum number of streams and waiting polls per client.
    package let streamsPerClient: Int
    /// The push settings at the start.
    package var push = PushScheduler.Terms()

    package init(
        limits: Limits = Limits(), coreLimits: CoreLimits = CoreLimits(),
        quota: AppQuota = AppQuota(), pushAddresses: TokenRate = RateLimits().pushAddresses,
        streams: StreamSettings = StreamSettings(),
        streamsPerClient: Int, push: PushScheduler.Terms = PushScheduler.Terms()
    ) {
        self.limits = limits
        self.coreLimits = coreLimits
        self.quota = quota
        self.pushAddresses = pushAddresses
        self.streams = streams
        self.streamsPerClient = streamsPerClient
        self.push = push
    }
}
