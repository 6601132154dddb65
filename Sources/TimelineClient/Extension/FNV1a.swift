/// A hash of 64 bits: against what disks do and for names, not against people, whose files they are.
struct FNV1a {
    let value: UInt64

    init(_ bytes: [UInt8]) {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        value = hash
    }
}
