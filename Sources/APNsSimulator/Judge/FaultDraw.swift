import WidgetModel

/// Draws faults: by the device token and how many pushes it had, so that a seed gives the same
/// faults however requests interleave.
struct FaultDraw: Sendable {
    private let faults: [PushFault]
    private let seed: UInt64

    init(_ faults: [PushFault], seed: UInt64) {
        self.faults = faults
        self.seed = seed
    }

    /// Returns the fault of a push; `nil` for none.
    func fault(token: String, request number: Int) -> PushBehaviour? {
        guard !faults.isEmpty else { return nil }
        // FNV-1a.
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in token.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        let draw = Self.mixed(hash ^ Self.mixed(seed &+ UInt64(truncatingIfNeeded: number)))
        var place = Int(draw % 1_000_000)
        for fault in faults {
            if place < fault.share { return fault.behaviour }
            place -= fault.share
        }
        return nil
    }

    /// Returns a number in which every bit depends on every bit of `value`.
    static func mixed(_ value: UInt64) -> UInt64 {
        var generator = SplitMix64(seed: value)
        return generator.next()
    }
}
