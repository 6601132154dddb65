import WidgetModel

/// The data that a shard wants to send: notifications, each to be signed once, and their deliveries
/// to streams.
///
/// The arrays are reused, so that a delivery allocates nothing.
package struct ShardOutput: Sendable {
    /// A notification with the properties of its frame.
    package struct Frame: Sendable {
        package let app: String
        package let content: StaleSet
        /// The facts about the change; `nil` unless a single change is reported.
        package let cause: ChangeCause?
        /// The time of acceptance of the change, or of the first that waited for a window's end, ms
        /// since 1970; 0 for catch-ups.
        package let acceptedAt: Int64
        /// The highest urgency of the changes that waited for a window's end; `nil` otherwise.
        package internal(set) var urgency: Urgency?
    }

    /// The delivery of one frame to one stream.
    package struct Delivery: Sendable {
        /// The index in ``ShardOutput/frames``.
        package let frame: Int32
        /// The next delivery to the same stream; -1 after the last.
        package fileprivate(set) var next: Int32
        /// The id that the frame carries for this stream; 0 for none.
        package fileprivate(set) var id: UInt64
    }

    /// A stream with deliveries, and the index of the first.
    package typealias Touched = (stream: StreamID, first: Int32)

    /// The frames to sign and send.
    package fileprivate(set) var frames: [Frame] = []
    /// The deliveries, linked for each stream.
    package fileprivate(set) var deliveries: [Delivery] = []
    /// The streams with deliveries, each once, with the index of the first.
    package fileprivate(set) var touched: [Touched] = []
    /// The streams to close because their client was removed.
    package internal(set) var ended: [StreamID] = []

    /// Whether there is nothing to send or close.
    package var isEmpty: Bool { touched.isEmpty && ended.isEmpty }

    /// The index of the frame added next.
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

    func frame(of delivery: Int32) -> Int32 { deliveries[Int(delivery)].frame }

    /// Clears the id of a delivery; returns the one that it carried.
    mutating func takeID(of delivery: Int32) -> UInt64 {
        let id = deliveries[Int(delivery)].id
        deliveries[Int(delivery)].id = 0
        return id
    }

    /// Links a stream's delivery to the next one.
    mutating func link(_ delivery: Int32, to next: Int32) {
        deliveries[Int(delivery)].next = next
    }

    mutating func removeAll() {
        // Most changes affect no stream.
        guard !isEmpty else { return }
        frames.removeAll(keepingCapacity: true)
        deliveries.removeAll(keepingCapacity: true)
        touched.removeAll(keepingCapacity: true)
        if !ended.isEmpty { ended.removeAll(keepingCapacity: true) }
    }
}
