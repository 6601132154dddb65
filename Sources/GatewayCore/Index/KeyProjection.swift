/// The keys of one rule by what is left of them when a change lacks certain attributes: it names
/// the keys that such a broad change reaches.
struct KeyProjection: Sendable {
    private var lists = KeyTable<[UInt32]>()
    /// By the number of a key, its place in its list.
    private var places: [UInt32] = []

    /// The projection of keys that are there already; `project` tells what is left of each.
    init(of numbers: some Sequence<Int>, project: (Int) -> BoundValues) {
        for number in numbers { add(number, project(number)) }
    }

    /// The numbers of the keys of which `projected` is left, in an order that depends on nothing
    /// but what was done before.
    func numbers(_ projected: BoundValues) -> [UInt32] {
        lists.find(projected).map { lists[$0] } ?? []
    }

    /// Whether any key has `projected` left.
    func isHeld(_ projected: BoundValues) -> Bool {
        lists.find(projected) != nil
    }

    /// Adds a key.
    mutating func add(_ number: Int, _ projected: BoundValues) {
        if places.count <= number {
            places.append(contentsOf: repeatElement(0, count: number + 1 - places.count))
        }
        let list = lists.find(projected) ?? lists.add(projected, [])
        places[number] = UInt32(lists[list].count)
        lists[list].append(UInt32(number))
    }

    /// Removes a key: the last of its list takes its place.
    mutating func remove(_ number: Int, _ projected: BoundValues) {
        guard let list = lists.find(projected), let last = lists[list].popLast() else { return }
        if Int(last) != number {
            lists[list][Int(places[number])] = last
            places[Int(last)] = places[number]
        }
        if lists[list].isEmpty { lists.remove(list, leaving: []) }
    }
}
