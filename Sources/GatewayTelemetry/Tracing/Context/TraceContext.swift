/// The propagated identity of a span: its trace, its id, and whether the trace is recorded (W3C
/// Trace Context Level 2).
package struct TraceContext: Sendable, Hashable {
    package var traceID: TraceID
    /// The id of the span; the receiver of the context is its child.
    package var spanID: SpanID
    /// Whether the caller may have recorded the trace.
    package var isSampled: Bool
    /// Whether the last seven bytes of the trace id are random.
    package var isRandom: Bool
    /// The vendor-specific trace state.
    package var state: TraceState
    /// Whether the context came from another process.
    package var isRemote: Bool

    /// Creates a context of this process.
    package init(
        traceID: TraceID, spanID: SpanID, isSampled: Bool, isRandom: Bool = true,
        state: TraceState = TraceState()
    ) {
        self.traceID = traceID
        self.spanID = spanID
        self.isSampled = isSampled
        self.isRandom = isRandom
        self.state = state
        isRemote = false
    }

    private static let sampledFlag: UInt64 = 0x01
    private static let randomFlag: UInt64 = 0x02
    /// The length of a `traceparent` of version 00; later versions may be longer.
    private static let length = 55
    /// The longest `traceparent` that is parsed; no known version is as long.
    private static let lengthMax = 256

    /// Parses the fields `traceparent` and `tracestate` from another process. Returns `nil` unless
    /// `traceparent` is `VERSION-TRACE-SPAN-FLAGS` in lower-case digits (section 3.2); the request
    /// is then traced as if it were missing. A malformed `tracestate` is ignored.
    package init?(traceparent: String, tracestate: String? = nil) {
        guard (Self.length...Self.lengthMax).contains(traceparent.utf8.count) else { return nil }
        let bytes = Array(traceparent.utf8)
        let dash = UInt8(ascii: "-")
        guard let version = Hexadecimal.value(bytes[0..<2]), version != 0xFF,
            bytes[2] == dash, bytes[35] == dash, bytes[52] == dash,
            // Later versions add fields after another dash.
            bytes.count == Self.length || (version > 0 && bytes[Self.length] == dash),
            let high = Hexadecimal.value(bytes[3..<19]),
            let low = Hexadecimal.value(bytes[19..<35]),
            let span = Hexadecimal.value(bytes[36..<52]),
            let flags = Hexadecimal.value(bytes[53..<55]),
            let traceID = TraceID(high: high, low: low), let spanID = SpanID(span)
        else { return nil }
        self.init(
            traceID: traceID, spanID: spanID, isSampled: flags & Self.sampledFlag != 0,
            isRandom: flags & Self.randomFlag != 0,
            state: tracestate.flatMap(TraceState.init) ?? TraceState())
        isRemote = true
    }

    /// Returns whether both identify the same span.
    package func isSameSpan(as other: TraceContext?) -> Bool {
        traceID == other?.traceID && spanID == other?.spanID
    }

    /// The known flags as one byte; the others are zero (section 3.2.2.5).
    package var flags: UInt8 {
        UInt8((isSampled ? Self.sampledFlag : 0) | (isRandom ? Self.randomFlag : 0))
    }

    /// The value of the field in version 00.
    package var traceparent: String {
        "00-\(traceID.hexadecimal)-\(spanID.hexadecimal)-0\(String(flags, radix: 16))"
    }
}
