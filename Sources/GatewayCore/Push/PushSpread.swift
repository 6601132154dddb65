import WidgetModel

/// Spreads a change that concerns many devices over a while, so that they are not woken, and do
/// not ask their backend for data, in the same second.
///
/// The delay of a device depends on the device and the change alone: asked again, after a restart
/// or on another node, it is the same; and it is not always the same devices that come last.
package struct PushSpread: Sendable {
    /// How much is spread.
    package struct Terms: Sendable, Hashable {
        /// Devices that may be woken within a second without being spread further.
        package let devicesPerSecond: Int
        /// The longest delay at ``WidgetModel/Urgency/low`` and below, in milliseconds.
        package let window: Int64
        /// The longest delay at ``WidgetModel/Urgency/normal``, in milliseconds.
        package let windowOfNormal: Int64

        /// Terms; values out of range count as the nearest one in it. No window is longer than a
        /// day, and that of normal urgency is no longer than the other.
        package init(
            devicesPerSecond: Int = 1_000, window: Int64 = 900_000,
            windowOfNormal: Int64 = 60_000
        ) {
            self.devicesPerSecond = max(1, devicesPerSecond)
            self.window = min(max(0, window), TimeAway.longest)
            self.windowOfNormal = min(max(0, windowOfNormal), self.window)
        }
    }

    private let terms: Terms
    private let hash: SipHash

    /// Spreads under `terms`.
    package init(_ terms: Terms, hash: SipHash) {
        self.terms = terms
        self.hash = hash
    }

    /// Over how many milliseconds the devices a change concerns are spread: as long as they take
    /// at the rate of the terms, up to the window; nothing for what is urgent, and for no more
    /// devices than fit into a second.
    package func span(devices: Int, urgency: Urgency) -> Int64 {
        let window: Int64 =
            switch urgency {
            case .high: 0
            case .normal: terms.windowOfNormal
            case .low, .veryLow: terms.window
            }
        guard devices > terms.devicesPerSecond else { return 0 }
        let seconds = Int64((devices - 1) / terms.devicesPerSecond + 1)
        return seconds < window / 1_000 ? seconds * 1_000 : window
    }

    /// How many milliseconds a device is pushed to after the change, less than ``span(devices:urgency:)``.
    ///
    /// - Parameters:
    ///   - device: Any number that stands for the device.
    ///   - sequence: The change's.
    ///   - devices: How many devices it concerns.
    package func delay(
        device: UInt64, sequence: UInt64, devices: Int, urgency: Urgency
    ) -> Int64 {
        let span = span(devices: devices, urgency: urgency)
        guard span > 0 else { return 0 }
        // The high word of the product is the hash, scaled to the span.
        return Int64(hash(device, sequence).multipliedFullWidth(by: UInt64(span)).high)
    }
}
