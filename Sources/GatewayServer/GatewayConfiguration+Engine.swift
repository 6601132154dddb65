import GatewayEngine
import GatewayOperations

extension GatewayConfiguration {
    /// The part that configures the engine.
    package var engine: EngineConfiguration {
        EngineConfiguration(
            limits: limits, coreLimits: coreLimits, quota: quota,
            pushAddresses: rates.pushAddresses, streams: streams,
            streamsPerClient: streamsPerClient, push: push.terms)
    }
}
