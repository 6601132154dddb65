/// Numbered places for the connections of a loop. A token names one connection: a late event of a
/// previous connection in the same place finds none.
struct SlotTable<Occupant: AnyObject> {
    private struct Slot {
        var occupant: Occupant?
        /// Grows with each occupant that leaves the place.
        var serial: UInt32 = 0
    }

    private var places: [Slot] = []
    private var free: [UInt32] = []
    /// The number of places that are reserved or occupied.
    private(set) var count = 0

    /// Reserves a place for an occupant, which is set next, and returns its token. The token's lower
    /// half is the place's number, which never comes near `UInt32.max`.
    mutating func reserve() -> UInt64 {
        count += 1
        if let place = free.popLast() { return token(at: place) }
        places.append(Slot())
        return token(at: UInt32(clamping: places.count - 1))
    }

    func token(at place: UInt32) -> UInt64 {
        UInt64(places[Int(place)].serial) << 32 | UInt64(place)
    }

    /// The occupant that a token was made for; `nil` if it has left.
    subscript(token: UInt64) -> Occupant? {
        get { isCurrent(token) ? places[Self.place(of: token)].occupant : nil }
        set { places[Self.place(of: token)].occupant = newValue }
    }

    /// Frees the occupant's place, unless it has left.
    mutating func remove(_ token: UInt64) {
        guard isCurrent(token) else { return }
        let place = Self.place(of: token)
        places[place].occupant = nil
        places[place].serial &+= 1
        free.append(UInt32(clamping: place))
        count -= 1
    }

    var occupants: [Occupant] { places.compactMap(\.occupant) }

    private func isCurrent(_ token: UInt64) -> Bool {
        places[Self.place(of: token)].serial == UInt32(truncatingIfNeeded: token >> 32)
    }

    private static func place(of token: UInt64) -> Int { Int(token & 0xFFFF_FFFF) }
}
