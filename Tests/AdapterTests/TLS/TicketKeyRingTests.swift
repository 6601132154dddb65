import Testing

@testable import GatewayTLS

/// The keys of session tickets, without OpenSSL and without a clock.
@Suite struct TicketKeyRingTests {
    private static let period = TicketKeyRing.period

    /// Returns a key whose name consists of one byte.
    private static func key(_ name: UInt8, begins: Int64) -> TicketKey? {
        TicketKey(begins: begins) {
            $0.copyBytes(from: repeatElement(name, count: $0.count))
            return true
        }
    }

    private static func opens(_ ring: TicketKeyRing, _ name: UInt8, at now: Int64) -> Bool {
        [UInt8](repeating: name, count: TicketKey.nameBytes)
            .withUnsafeBytes { ring.opening($0, at: now) != nil }
    }

    @Test func `a key seals for half a day, and opens for a day longer`() throws {
        var ring = TicketKeyRing()
        var made: [Int64] = []
        func seal(_ now: Int64) -> UInt8? {
            ring.sealing(at: now) { begins in
                made.append(begins)
                return Self.key(UInt8(made.count), begins: begins)
            }?.name[0]
        }
        #expect(!Self.opens(ring, 1, at: 5))
        #expect(seal(5) == 1)
        #expect(seal(4 + Self.period) == 1)
        #expect(seal(5 + Self.period) == 2)
        #expect(seal(5 + 2 * Self.period) == 3)
        #expect(Self.opens(ring, 1, at: 4 + 3 * Self.period))
        #expect(!Self.opens(ring, 1, at: 5 + 3 * Self.period), "nobody connected for a while")
        #expect(seal(5 + 3 * Self.period) == 4)
        #expect(ring.keys.map { $0.name[0] } == [4, 3, 2])
        #expect(made == (0...3).map { 5 + $0 * Self.period })
        // After a long time none of the old keys is left.
        #expect(seal(5 + 90 * Self.period) == 5)
        #expect(ring.keys.count == 1)
    }

    @Test func `without randomness no ticket is sealed, and the old ones open`() {
        var ring = TicketKeyRing()
        _ = ring.sealing(at: 0) { Self.key(1, begins: $0) }
        #expect(ring.sealing(at: Self.period) { _ in nil } == nil)
        #expect(Self.opens(ring, 1, at: Self.period))
        #expect(TicketKey(begins: 0) { _ in false } == nil)
    }

    @Test func `keys from elsewhere are used from their time on`() throws {
        var ring = TicketKeyRing()
        _ = ring.sealing(at: 0) { Self.key(1, begins: $0) }
        ring.add([Self.key(7, begins: 100), Self.key(1, begins: 0)].compactMap { $0 }, at: 50)
        #expect(ring.keys.map { $0.name[0] } == [7, 1])
        #expect(ring.sealing(at: 99) { _ in nil }?.name[0] == 1)
        #expect(Self.opens(ring, 7, at: 99), "another node may be ahead")
        #expect(ring.sealing(at: 100) { _ in nil }?.name[0] == 7)
        ring.add((10...20).compactMap { Self.key($0, begins: Int64($0)) }, at: 200)
        #expect(ring.keys.count == TicketKeyRing.keysMax)
    }
}
