import GatewayCore
import GatewayPush
import WidgetModel

/// The settings of the engine; they hold from its start to its end.
package struct EngineConfiguration: Sendable {
    /// The limits of documents.
    var limits = Limits()
    /// The limits of what is kept in memory.
    var coreLimits = CoreLimits()
    /// The limits of what one app may keep.
    var quota = AppQuota()
    /// The settings of event streams.
    var streams = StreamSettings()
    /// Streams and waiting polls that one client may hold.
    var streamsPerClient: Int
    /// The rules of pushes, as of the start.
    var push = PushDesk.Terms()

    /// Creates settings.
    package init(
        limits: Limits = Limits(), coreLimits: CoreLimits = CoreLimits(),
        quota: AppQuota = AppQuota(), streams: StreamSettings = StreamSettings(),
        streamsPerClient: Int, push: PushDesk.Terms = PushDesk.Terms()
    ) {
        self.limits = limits
        self.coreLimits = coreLimits
        self.quota = quota
        self.streams = streams
        self.streamsPerClient = streamsPerClient
        self.push = push
    }
}
