import WidgetModel

extension SplitMix64 {
    /// Returns a number below `bound`, which must be positive.
    package mutating func below(_ bound: Int) -> Int {
        Int(truncatingIfNeeded: next() % UInt64(bound))
    }

    /// Returns whether something that happens `percent` times of a hundred happens now.
    package mutating func happens(_ percent: Int) -> Bool {
        below(100) < percent
    }

    /// Returns one of `choices`, which must not be empty.
    package mutating func pick<Choice>(_ choices: [Choice]) -> Choice {
        choices[below(choices.count)]
    }
}
