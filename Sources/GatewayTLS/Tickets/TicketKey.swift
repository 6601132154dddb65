import COpenSSL

/// A key that seals session tickets: its name, which is sent in the clear, and the keys of cipher and
/// MAC. Its memory is overwritten when it is no longer used.
package final class TicketKey: @unchecked Sendable {
    // Sound: written in `init` only.
    private let bytes: UnsafeMutableRawBufferPointer

    static let nameBytes = 16
    static let cipherKeyBytes = 32
    static let macKeyBytes = 32
    /// The number of bytes that a key is made of.
    package static let byteCount = nameBytes + cipherKeyBytes + macKeyBytes

    /// The time from which it seals, in seconds.
    package let begins: Int64

    /// Creates a key whose ``byteCount`` bytes `fill` writes: name, cipher key and MAC key. `nil`
    /// when `fill` returns false.
    package init?(begins: Int64, fill: (UnsafeMutableRawBufferPointer) -> Bool) {
        bytes = .allocate(byteCount: Self.byteCount, alignment: 16)
        bytes.initializeMemory(as: UInt8.self, repeating: 0)
        self.begins = begins
        guard fill(bytes) else { return nil }
    }

    deinit {
        OPENSSL_cleanse(bytes.baseAddress, bytes.count)
        bytes.deallocate()
    }

    var name: UnsafeRawBufferPointer { part(0, Self.nameBytes) }
    var cipherKey: UnsafeRawBufferPointer { part(Self.nameBytes, Self.cipherKeyBytes) }
    var macKey: UnsafeRawBufferPointer {
        part(Self.nameBytes + Self.cipherKeyBytes, Self.macKeyBytes)
    }

    private func part(_ start: Int, _ count: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: bytes[start..<start + count])
    }

    /// Returns whether a ticket with this name was sealed with the key.
    func isNamed(_ name: UnsafeRawBufferPointer) -> Bool { self.name.elementsEqual(name) }
}
