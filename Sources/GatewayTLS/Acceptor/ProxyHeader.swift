/// The header of the PROXY protocol, version 2, with which a proxy begins a connection
/// (haproxy.org/download/2.6/doc/proxy-protocol.txt, section 2.2).
struct ProxyHeader: Equatable {
    /// The address of the client; `nil` where the connection is the proxy's own, or where the client
    /// has no address of TCP over IP: then the peer's address counts.
    let client: SourceAddress?
    /// The length of the header in bytes. The client's own bytes follow it.
    let byteCount: Int

    /// The state of reading a header.
    enum Progress: Equatable {
        /// More bytes are needed.
        case incomplete
        case complete(ProxyHeader)
        case invalid(Fault)
    }

    /// The reason why bytes are not a header, as the end of a sentence about the proxy.
    enum Fault: String, Equatable {
        case missing = "the proxy sent no PROXY header of version 2"
        case textual = "the proxy sent a PROXY header of version 1; only version 2 is supported"
        case unknown = "the proxy's PROXY header has an unknown version, command or family"
        case tooLong = "the proxy's PROXY header is too long"
        case malformed = "the proxy's PROXY header is malformed"
        case checksum = "the checksum of the proxy's PROXY header is wrong"
    }

    /// The longest header accepted: addresses take at most 232 bytes of it, the rest is for
    /// extensions such as the names in a client's certificate.
    static let bytesMax = 16 + 4096

    private static let signature: [UInt8] = [
        0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A,
    ]
    private static let textSignature = Array("PROXY ".utf8)
    private static let fixedBytes = 16
    /// The type of the extension that contains the header's CRC-32C.
    private static let checksumType: UInt8 = 0x03

    /// Reads the header at the beginning of a connection's bytes.
    static func read(_ bytes: UnsafeRawBufferPointer) -> Progress {
        guard begins(bytes, signature) else {
            return .invalid(begins(bytes, textSignature) ? .textual : .missing)
        }
        // The version and command are judged before more is awaited.
        if bytes.count > 12, bytes[12] & 0xFE != 0x20 { return .invalid(.unknown) }
        guard bytes.count >= fixedBytes else { return .incomplete }
        let length = Int(bytes[14]) << 8 | Int(bytes[15])
        guard fixedBytes + length <= bytesMax else { return .invalid(.tooLong) }
        guard bytes.count >= fixedBytes + length else { return .incomplete }
        return parse(UnsafeRawBufferPointer(rebasing: bytes[..<(fixedBytes + length)]))
    }

    /// Returns whether bytes that are not TLS begin like a header of either version.
    static func isLikely(in bytes: UnsafeRawBufferPointer) -> Bool {
        bytes.starts(with: signature) || bytes.starts(with: textSignature)
    }

    /// Whether the bytes begin with a text, as far as they reach.
    private static func begins(_ bytes: UnsafeRawBufferPointer, _ text: [UInt8]) -> Bool {
        bytes.prefix(text.count).elementsEqual(text.prefix(bytes.count))
    }

    private static func parse(_ header: UnsafeRawBufferPointer) -> Progress {
        let (family, transport) = (header[13] >> 4, header[13] & 0x0F)
        guard family <= 3, transport <= 2 else { return .invalid(.unknown) }
        let addressBytes = [0, 12, 36, 216][Int(family)]
        let extensions = fixedBytes + addressBytes
        guard header.count >= extensions else { return .invalid(.malformed) }
        if let fault = check(header, from: extensions) { return .invalid(fault) }
        let isLocal = header[12] & 0x0F == 0
        var client: SourceAddress?
        // Source address, destination address, ports; the others are no addresses of TCP over IP.
        if !isLocal, transport == 1, family == 1 || family == 2 {
            client = SourceAddress(ip: header[fixedBytes..<fixedBytes + (family == 1 ? 4 : 16)])
        }
        return .complete(ProxyHeader(client: client, byteCount: header.count))
    }

    /// Checks the extensions: each has a type, a length of two bytes, and that many bytes.
    private static func check(_ header: UnsafeRawBufferPointer, from start: Int) -> Fault? {
        var (index, checksum) = (start, Int?.none)
        while index < header.count {
            guard index + 3 <= header.count else { return .malformed }
            let value = index + 3
            let end = value + (Int(header[index + 1]) << 8 | Int(header[index + 2]))
            guard end <= header.count else { return .malformed }
            if header[index] == checksumType {
                guard end - value == 4, checksum == nil else { return .malformed }
                checksum = value
            }
            index = end
        }
        guard let checksum else { return nil }
        let stated = header[checksum..<checksum + 4].reduce(0 as UInt32) { $0 << 8 | UInt32($1) }
        return crc32c(header, zeroing: checksum..<checksum + 4) == stated ? nil : .checksum
    }

    /// Returns the CRC-32C (RFC 3720 appendix B.4) of bytes, of which some count as zero. Bit by bit:
    /// few proxies send it, and a header is short.
    private static func crc32c(_ bytes: UnsafeRawBufferPointer, zeroing: Range<Int>) -> UInt32 {
        var register = UInt32.max
        for (index, byte) in bytes.enumerated() {
            register ^= zeroing.contains(index) ? 0 : UInt32(byte)
            for _ in 0..<8 {
                register = register >> 1 ^ (register & 1 == 1 ? 0x82F6_3B78 : 0)
            }
        }
        return ~register
    }
}
