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
        /// When the change was accepted, or the first of those that waited for a window's end, in
        /// milliseconds since 1970; 0 for catch-ups.
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

        init(frame: Int32, next: Int32, carriesID: Bool) {
            self.frame = frame
            self.next = next
            self.carriesID = carriesID
        }
    }

    /// A stream with deliveries, and the first of them.
    package typealias Touched = (stream: StreamID, first: Int32)

    /// The notifications.
    package fileprivate(set) var frames: [Frame] = []
    /// The deliveries, linked per stream.
    package fileprivate(set) var deliveries: [Delivery] = []
    /// Streams with deliveries, and the first of each; each stream once.
    package fileprivate(set) var touched: [Touched] = []
    /// Streams whose client was removed: to be ended.
    package internal(set) var ended: [StreamID] = []

    /// Whether there is nothing to do.
    package var isEmpty: Bool { touched.isEmpty && ended.isEmpty }

    /// The place of the frame added next.
    var nextFrame: Int32 { Int32(truncatingIfNeeded: frames.count) }

    mutating func add(_ frame: Frame) {
        frames.append(frame)
    }

    mutating func append(
        _ made: UnsafeBufferPointer<Delivery>, _ met: UnsafeBufferPointer<Touched>
    ) {
        deliveries.append(contentsOf: made)
        touched.append(contentsOf: met)
    }

    /// The frame of a delivery.
    func frame(of delivery: Int32) -> Int32 { deliveries[Int(delivery)].frame }

    /// Whether a delivery carries the id, which it does no more.
    mutating func takeID(of delivery: Int32) -> Bool {
        let carriesID = deliveries[Int(delivery)].carriesID
        deliveries[Int(delivery)].carriesID = false
        return carriesID
    }

    /// Notes that a stream's delivery is followed by another.
    mutating func link(_ delivery: Int32, to next: Int32) {
        deliveries[Int(delivery)].next = next
    }

    mutating func removeAll() {
        // Most changes reach nobody.
        guard !isEmpty else { return }
        frames.removeAll(keepingCapacity: true)
        deliveries.removeAll(keepingCapacity: true)
        touched.removeAll(keepingCapacity: true)
        if !ended.isEmpty { ended.removeAll(keepingCapacity: true) }
    }
}
