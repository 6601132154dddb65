extension BoundValues {
    /// What may stand at one position.
    enum Options {
        /// This, and `unset` as well if so said.
        case one(Position, orUnset: Bool = false)
        /// Each of these values, and `unset` as well if so said.
        case each([String], orUnset: Bool = false)
    }

    /// Calls `body` with the encoding of each combination of what may stand at `count` positions;
    /// the first position's options vary slowest.
    static func visitCombinations(
        of count: Int, _ options: (_ place: Int) -> Options, _ body: ([UInt8]) -> Void
    ) {
        func extend(_ head: [UInt8], _ place: Int) {
            guard place < count else { return body(head) }
            switch options(place) {
            case .one(let position, let orUnset):
                extend(encoded(position, after: head), place + 1)
                if orUnset { extend(encoded(.unset, after: head), place + 1) }
            case .each(let values, let orUnset):
                for value in values { extend(encoded(.value(value), after: head), place + 1) }
                if orUnset { extend(encoded(.unset, after: head), place + 1) }
            }
        }
        extend([], 0)
    }
}
