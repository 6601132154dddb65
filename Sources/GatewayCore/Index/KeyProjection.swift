/// The keys of one rule, grouped by their values without certain attributes. Finds the keys that a
/// broad change, which lacks these attributes, affects.
struct KeyProjection: Sendable {
    private var lists = KeyTable<[UInt32]>()
    /// The position of each key in its list, by the key's number.
    private var places: [UInt32] = []

    /// Creates the projection of existing keys; `project` returns the remaining values of each.
    init(of numbers: some Sequence<Int>, project: (Int) -> BoundValues) {
        for number in numbers { add(number, project(number)) }
    }

    /// Returns the numbers of the keys with the remaining values `projected`, in an order that
    /// depends only on the preceding operations.
    func numbers(_ projected: BoundValues) -> [UInt32] {
        lists.find(projected).map { lists[$0] } ?? []
    }

    /// Returns whether any key has the remaining values `projected`.
    func isHeld(_ projected: BoundValues) -> Bool {
        lists.find(projected) != nil
    }

    mutating func add(_ number: Int, _ projected: BoundValues) {
        if places.count <= number {
            places.append(contentsOf: repeatElement(0, count: number + 1 - places.count))
        }
        let list = lists.find(projected) ?? lists.add(projected, [])
        places[number] = UInt32(lists[list].count)
        lists[list].append(UInt32(number))
    }

    /// Removes a key: the last key of its list takes its position.
    mutating func remove(_ number: Int, _ projected: BoundValues) {
        guard let list = lists.find(projected), let last = lists[list].popLast() else { return }
        if Int(last) != number {
            lists[list][Int(places[number])] = last
            places[Int(last)] = places[number]
        }
        if lists[list].isEmpty { lists.remove(list, leaving: []) }
    }
}
