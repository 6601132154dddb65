import GatewayCore
import GatewayTelemetry
import Tracing

/// The trace of an operator's reload.
package struct ReloadTrace: Sendable {
    private let tracer: RecordingTracer
    private let request: ServiceContext
    private let app: String
    private let scope: ReloadScope

    /// Returns `nil` if nothing is recorded.
    init?(_ app: String, _ scope: ReloadScope, _ tracer: RecordingTracer) {
        guard let request = ServiceContext.current, request.trace?.isSampled == true else {
            return nil
        }
        self.tracer = tracer
        self.request = request
        self.app = app
        self.scope = scope
    }

    /// Returns the trace to publish, once the reload is on disk.
    func committed(at sequence: UInt64, loops: Int) -> PostTrace.Decided {
        var attributes: SpanAttributes = [:]
        attributes[TraceAttribute.app] = app
        attributes[TraceAttribute.sequence] = Int64(clamping: sequence)
        // For a single client, record only that there was a reload.
        if case .kind(let kind) = scope { attributes[TraceAttribute.kinds] = [kind] }
        let change = TracedChange(tracer, request, attributes, loops: loops)
        return PostTrace.Decided(change, at: sequence)
    }
}
