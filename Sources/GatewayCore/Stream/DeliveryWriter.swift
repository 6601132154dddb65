/// Hands one notification to many streams: deliveries are prepared on the stack and appended many
/// at a time, for an append of its own would cost more than everything else about a delivery.
struct DeliveryWriter {
    /// What is appended to.
    private var output: ShardOutput
    /// The notification's number.
    let number: UInt64

    private static let roomCount = 64
    private let frame: Int32
    private let watermark: UInt64
    private let batch: UInt64
    private let made: UnsafeMutableBufferPointer<ShardOutput.Delivery>
    private let met: UnsafeMutableBufferPointer<ShardOutput.Touched>
    private var madeCount = 0
    private var metCount = 0
    /// Deliveries in the output.
    private var appendedCount: Int

    /// Calls `body` with a writer of the frame `frame` of `output`.
    ///
    /// - Parameters:
    ///   - number: The notification's number: that of no other.
    ///   - batch: Where the numbers of its batch start. Of several notifications that one stream
    ///     gets in one batch only the last carries the id.
    /// - Returns: Whether any stream got it.
    @inline(__always)
    static func write(
        _ frame: Int32, watermark: UInt64, number: UInt64, batch: UInt64,
        to output: inout ShardOutput, _ body: (inout DeliveryWriter) -> Void
    ) -> Bool {
        // Sound: both rooms are used within the closures that lend them. They hold trivial values,
        // and only as many are read as were written.
        withUnsafeTemporaryAllocation(of: ShardOutput.Delivery.self, capacity: roomCount) { made in
            withUnsafeTemporaryAllocation(of: ShardOutput.Touched.self, capacity: roomCount) {
                var taken = ShardOutput()
                swap(&taken, &output)
                let before = taken.deliveries.count
                var writer = DeliveryWriter(
                    output: taken, number: number, frame: frame, watermark: watermark,
                    batch: batch, made: made, met: $0, appendedCount: before)
                taken = ShardOutput()
                body(&writer)
                writer.flush()
                output = writer.output
                return writer.appendedCount > before
            }
        }
    }

    /// Hands the notification to a stream.
    @inline(__always)
    mutating func deliver(to stream: inout StreamRecord, slot: UInt32) {
        if madeCount == Self.roomCount { flush() }
        guard stream.last < 0 else { return deliverNext(to: &stream) }
        let carriesID = watermark > stream.watermark
        if carriesID { stream.watermark = watermark }
        let index = Int32(truncatingIfNeeded: appendedCount &+ madeCount)
        stream.notified = number
        stream.last = index
        met[metCount] = (StreamID(slot: slot, serial: stream.serial), index)
        metCount &+= 1
        made[madeCount] = .init(frame: frame, next: -1, carriesID: carriesID)
        madeCount &+= 1
    }

    /// Hands the notification to a stream that has got another in this turn.
    @inline(never)
    private mutating func deliverNext(to stream: inout StreamRecord) {
        // It never is: a stream gets each notification once, so its last was of another.
        if stream.last >= appendedCount { flush() }
        let isSameBatch = stream.notified >= batch
        let carriesID =
            isSameBatch ? output.takeID(of: stream.last) : watermark > stream.watermark
        if carriesID { stream.watermark = max(stream.watermark, watermark) }
        let index = Int32(truncatingIfNeeded: appendedCount &+ madeCount)
        output.link(stream.last, to: index)
        stream.notified = number
        stream.last = index
        made[madeCount] = .init(frame: frame, next: -1, carriesID: carriesID)
        madeCount &+= 1
    }

    @inline(never)
    private mutating func flush() {
        output.append(
            UnsafeBufferPointer(rebasing: made[..<madeCount]),
            UnsafeBufferPointer(rebasing: met[..<metCount]))
        appendedCount += madeCount
        madeCount = 0
        metCount = 0
    }
}
