/// A span as others know it: which trace it belongs to, what it is called there, and whether the
/// trace is recorded (W3C Trace Context Level 2).
package struct TraceContext: Sendable, Hashable {
    /// The trace.
    package var traceID: TraceID
    /// The span; whoever receives the context is its child.
    package var spanID: SpanID
    /// Whether the caller may have recorded it.
    package var isSampled: Bool
    /// Whether the last seven bytes of the trace's id are random.
    package var isRandom: Bool
    /// What vendors pass along.
    package var state: TraceState
    /// Whether it came from another process.
    package var isRemote: Bool

    /// A context of this process.
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
    /// Longer ones are not looked at: no version that is known has as much to say.
    private static let lengthMax = 256

    /// Reads the fields `traceparent` and `tracestate`, as another process sent them.
    ///
    /// - Returns: `nil` for whatever is not `VERSION-TRACE-SPAN-FLAGS` in lower-case digits (section
    ///   3.2): who sent it is traced as if it had not. A `tracestate` that cannot be read is left
    ///   out, and the rest holds.
    package init?(traceparent: String, tracestate: String? = nil) {
        guard (Self.length...Self.lengthMax).contains(traceparent.utf8.count) else { return nil }
        let bytes = Array(traceparent.utf8)
        let dash = UInt8(ascii: "-")
        guard let version = Hexadecimal.value(bytes[0..<2]), version != 0xFF,
            bytes[2] == dash, bytes[35] == dash, bytes[52] == dash,
            // What a later version adds follows after another dash.
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

    /// Whether both name the same span.
    package func isSameSpan(as other: TraceContext?) -> Bool {
        traceID == other?.traceID && spanID == other?.spanID
    }

    /// The flags that are known, as one byte; the others are zero (section 3.2.2.5).
    package var flags: UInt8 {
        UInt8((isSampled ? Self.sampledFlag : 0) | (isRandom ? Self.randomFlag : 0))
    }

    /// The field of version 00.
    package var traceparent: String {
        "00-\(traceID.hexadecimal)-\(spanID.hexadecimal)-0\(String(flags, radix: 16))"
    }
}
