extension BoundValues {
    /// The possible values at one position.
    enum Options {
        case one(Position)
        case each([String])
    }

    /// Calls `body` with the encoding of each combination of the options at `count` positions; the
    /// first position varies slowest.
    static func visitCombinations(
        of count: Int, _ options: (_ place: Int) -> Options, _ body: ([UInt8]) -> Void
    ) {
        func extend(_ head: [UInt8], _ place: Int) {
            guard place < count else { return body(head) }
            switch options(place) {
            case .one(let position):
                extend(encoded(position, after: head), place + 1)
            case .each(let values):
                for value in values { extend(encoded(.value(value), after: head), place + 1) }
            }
        }
        extend([], 0)
    }
}
