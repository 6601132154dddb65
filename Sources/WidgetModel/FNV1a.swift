/// A 64-bit hash (FNV-1a) for file names and against disk errors. It does not protect against
/// tampering; the files belong to the person who could tamper with them.
package struct FNV1a {
    package let value: UInt64

    package init(_ bytes: [UInt8]) {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        value = hash
    }
}
