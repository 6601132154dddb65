import Logging
import Tracing

private enum TraceContextKey: ServiceContextKey {
    typealias Value = TraceContext
}

private enum RemoteParentKey: ServiceContextKey {
    typealias Value = TraceContext
}

extension ServiceContext {
    /// The current span, or the span of another process that this one continues.
    package var trace: TraceContext? {
        get { self[TraceContextKey.self] }
        set { self[TraceContextKey.self] = newValue }
    }

    /// The span of another process, once a local span has begun below it.
    package internal(set) var remoteParent: TraceContext? {
        get { self[RemoteParentKey.self] }
        set { self[RemoteParentKey.self] = newValue }
    }
}

extension Logger.MetadataProvider {
    /// Provides `trace_id` and `span_id` of the current span, recorded or not; nothing outside of a
    /// span.
    package static let traceContext = Logger.MetadataProvider {
        guard let trace = ServiceContext.current?.trace else { return [:] }
        return [
            "trace_id": "\(trace.traceID.hexadecimal)", "span_id": "\(trace.spanID.hexadecimal)",
        ]
    }
}
