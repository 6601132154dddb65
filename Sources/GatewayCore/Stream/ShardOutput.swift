/// What a shard wants sent: notifications, each to be signed once, and which stream gets which.
///
/// The arrays are reused from turn to turn, so that a delivery allocates nothing.
package struct ShardOutput: Sendable {
    /// A notification, with what its frame needs.
    package struct Frame: Sendable {
        /// The app it is for.
        package let app: String
        /// What is stale.
        package let content: StaleSet
        /// The id the frame carries where it carries one.
        package let watermark: UInt64
        /// When the change happened; only when a single change is spoken of.
        package let causeTime: String?
        /// When the change was accepted, in milliseconds since 1970; 0 for catch-ups.
        package let acceptedAt: Int64
    }

    /// One frame to one stream.
    package struct Delivery: Sendable {
        /// Index into ``ShardOutput/frames``.
        package let frame: Int32
        /// The next delivery to the same stream, -1 after the last.
        package fileprivate(set) var next: Int32
        /// Whether the frame carries the id for this stream.
        package fileprivate(set) var carriesID: Bool
    }

    /// The notifications.
    package fileprivate(set) var frames: [Frame] = []
    /// The deliveries, linked per stream.
    package fileprivate(set) var deliveries: [Delivery] = []
    /// Streams with deliveries, and the first of each; each stream once.
    package fileprivate(set) var touched: [(stream: StreamID, first: Int32)] = []
    /// Streams whose client was removed: to be ended.
    package internal(set) var ended: [StreamID] = []

    /// Whether there is nothing to do.
    package var isEmpty: Bool { touched.isEmpty && ended.isEmpty }

    mutating func add(_ frame: Frame) -> Int32 {
        frames.append(frame)
        return Int32(truncatingIfNeeded: frames.count - 1)
    }

    /// Hands a frame to a stream. Of several in one batch only the last carries the id.
    mutating func deliver(
        _ frame: Int32, watermark: UInt64, to stream: inout StreamRecord, slot: UInt32,
        batch: UInt64
    ) {
        let index = Int32(truncatingIfNeeded: deliveries.count)
        var carriesID = false
        if stream.batch == batch, stream.last >= 0 {
            carriesID = deliveries[Int(stream.last)].carriesID
            deliveries[Int(stream.last)].carriesID = false
        } else if watermark > stream.watermark {
            carriesID = true
            stream.watermark = watermark
        }
        stream.batch = batch
        if stream.last >= 0 {
            deliveries[Int(stream.last)].next = index
        } else {
            stream.first = index
            touched.append((StreamID(slot: slot, serial: stream.serial), index))
        }
        stream.last = index
        deliveries.append(Delivery(frame: frame, next: -1, carriesID: carriesID))
    }

    mutating func removeAll() {
        frames.removeAll(keepingCapacity: true)
        deliveries.removeAll(keepingCapacity: true)
        touched.removeAll(keepingCapacity: true)
        ended.removeAll(keepingCapacity: true)
    }
}
