import WidgetModel

/// Spreads a change that affects many devices over time, so that they do not wake up, and request
/// data from their backend, in the same second.
///
/// The delay of a device depends only on the device and the change: it is the same after a restart
/// and on another node, and the devices that come last differ between changes.
package struct PushSpread: Sendable {
    /// The limits for spreading.
    package struct Terms: Sendable, Hashable {
        /// The number of devices that may wake up within a second without being spread further.
        package let devicesPerSecond: Int
        /// The longest delay for ``WidgetModel/Urgency/low`` and below, ms.
        package let window: Int64
        /// The longest delay for ``WidgetModel/Urgency/normal``, ms.
        package let windowOfNormal: Int64

        /// Creates limits; values out of range are clamped. No window is longer than a day, and
        /// that of normal urgency is not longer than the other.
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

    package init(_ terms: Terms, hash: SipHash) {
        self.terms = terms
        self.hash = hash
    }

    /// Returns the time over which the devices affected by a change are spread, ms: what the
    /// configured rate requires, at most the window; 0 for urgent changes, and if all devices fit
    /// into a second.
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

    /// Returns the delay of a device's push after the change, ms, less than
    /// ``span(devices:urgency:)``.
    ///
    /// - Parameters:
    ///   - device: A number that identifies the device.
    ///   - sequence: The sequence of the change.
    ///   - devices: The number of affected devices.
    ///   - longest: The longest span, ms.
    package func delay(
        device: UInt64, sequence: UInt64, devices: Int, urgency: Urgency,
        within longest: Int64 = .max
    ) -> Int64 {
        let span = min(span(devices: devices, urgency: urgency), longest)
        guard span > 0 else { return 0 }
        // The high word of the product is the hash scaled to the span.
        return Int64(hash(device, sequence).multipliedFullWidth(by: UInt64(span)).high)
    }
}
