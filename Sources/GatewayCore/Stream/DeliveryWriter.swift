/// Delivers one notification to many streams. Deliveries are collected on the stack and appended in
/// batches, because appending each one separately would cost more than the rest of a delivery.
struct DeliveryWriter {
    /// The output that deliveries are appended to.
    private let output: UnsafeMutablePointer<ShardOutput>

    private static let roomCount = 64
    private let frame: Int32
    private let watermarks: Watermarks
    private let batch: Int32
    private let made: UnsafeMutableBufferPointer<ShardOutput.Delivery>
    private let met: UnsafeMutableBufferPointer<ShardOutput.Touched>
    private var madeCount = 0
    private var metCount = 0
    /// The number of deliveries in the output.
    private var appendedCount: Int

    /// Calls `body` with a writer for the frame that is added to `output` next.
    ///
    /// - Parameter batch: The first frame of the batch. If a stream gets several notifications of a
    ///   batch, only the last one carries the id.
    /// - Returns: Whether any stream got the frame.
    @inline(__always)
    static func write(
        watermarks: Watermarks, batch: Int32, to output: inout ShardOutput,
        _ body: (inout DeliveryWriter) -> Void
    ) -> Bool {
        // Sound: the output and both buffers are used within the closures that lend them. The
        // buffers hold trivial values, and only initialized ones are read.
        withUnsafeTemporaryAllocation(of: ShardOutput.Delivery.self, capacity: roomCount) { made in
            withUnsafeTemporaryAllocation(of: ShardOutput.Touched.self, capacity: roomCount) {
                met in
                withUnsafeMutablePointer(to: &output) { output in
                    let before = output.pointee.deliveries.count
                    var writer = DeliveryWriter(
                        output: output, frame: output.pointee.nextFrame, watermarks: watermarks,
                        batch: batch, made: made, met: met, appendedCount: before)
                    body(&writer)
                    writer.flush()
                    return writer.appendedCount > before
                }
            }
        }
    }

    /// Returns whether a stream has got the notification.
    @inline(__always)
    func hasDelivered(to stream: StreamRecord) -> Bool {
        stream.last >= 0
            && (stream.last >= appendedCount || output.pointee.frame(of: stream.last) == frame)
    }

    @inline(__always)
    mutating func deliver(to stream: inout StreamRecord, slot: UInt32) {
        if madeCount == Self.roomCount { flush() }
        guard stream.last < 0 else { return deliverNext(to: &stream) }
        let id = stream.advance(to: watermarks)
        let index = Int32(truncatingIfNeeded: appendedCount &+ madeCount)
        stream.last = index
        met[metCount] = (StreamID(slot: slot, serial: stream.serial), index)
        metCount &+= 1
        made[madeCount] = .init(frame: frame, next: -1, id: id)
        madeCount &+= 1
    }

    /// Delivers the notification to a stream that already has another one in this turn.
    @inline(never)
    private mutating func deliverNext(to stream: inout StreamRecord) {
        // Never true in practice: a stream gets each notification once, so its last delivery
        // belongs to another.
        if stream.last >= appendedCount { flush() }
        let isSameBatch = output.pointee.frame(of: stream.last) >= batch
        let id =
            isSameBatch
            ? output.pointee.takeID(of: stream.last) : stream.advance(to: watermarks)
        let index = Int32(truncatingIfNeeded: appendedCount &+ madeCount)
        output.pointee.link(stream.last, to: index)
        stream.last = index
        made[madeCount] = .init(frame: frame, next: -1, id: id)
        madeCount &+= 1
    }

    @inline(never)
    private mutating func flush() {
        output.pointee.append(
            UnsafeBufferPointer(rebasing: made[..<madeCount]),
            UnsafeBufferPointer(rebasing: met[..<metCount]))
        appendedCount += madeCount
        madeCount = 0
        metCount = 0
    }
}
