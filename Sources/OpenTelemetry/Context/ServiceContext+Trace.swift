import Logging
import Tracing

private enum TraceContextKey: ServiceContextKey {
    typealias Value = TraceContext
}

private enum RemoteParentKey: ServiceContextKey {
    typealias Value = TraceContext
}

extension ServiceContext {
    /// The span that is going on, or the one that another process said it was in.
    package var trace: TraceContext? {
        get { self[TraceContextKey.self] }
        set { self[TraceContextKey.self] = newValue }
    }

    /// What another process said, once a span has begun below it.
    package internal(set) var remoteParent: TraceContext? {
        get { self[RemoteParentKey.self] }
        set { self[RemoteParentKey.self] = newValue }
    }
}

extension Logger.MetadataProvider {
    /// `trace_id` and `span_id` of the span that is going on, recorded or not; nothing outside of
    /// any.
    package static let traceContext = Logger.MetadataProvider {
        guard let trace = ServiceContext.current?.trace else { return [:] }
        return [
            "trace_id": "\(trace.traceID.hexadecimal)", "span_id": "\(trace.spanID.hexadecimal)",
        ]
    }
}
