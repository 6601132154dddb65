/// A random number generator that repeats itself from a seed (SplitMix64, Steele, Lea and Flood
/// 2014): a failing test prints its seed, and that is all it takes to run it again.
public struct SeededGenerator: RandomNumberGenerator, Sendable {
    /// The seed it started from.
    public let seed: UInt64
    private var state: UInt64

    /// A generator that gives the same numbers for the same seed, on every machine.
    public init(seed: UInt64) {
        self.seed = seed
        state = seed
    }

    /// The next number.
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which must be positive.
    public mutating func below(_ bound: Int) -> Int {
        Int(truncatingIfNeeded: next() % UInt64(bound))
    }

    /// Whether something that happens `percent` times of a hundred happens now.
    public mutating func happens(_ percent: Int) -> Bool {
        below(100) < percent
    }

    /// One of `choices`, which must not be empty.
    public mutating func pick<Choice>(_ choices: [Choice]) -> Choice {
        choices[below(choices.count)]
    }
}
