import Testing
import WidgetModel

@testable import GatewayTLS

/// The header of the PROXY protocol, version 2.
@Suite struct ProxyHeaderTests {
    static let signature: [UInt8] = [
        0x0D, 0x0A, 0x0D, 0x0A, 0, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A,
    ]
    static let ports: [UInt8] = [0x30, 0x39, 1, 0xBB]
    static let client4: [UInt8] = [192, 0, 2, 1]
    static let client6: [UInt8] = [0x20, 1, 0x0D, 0xB8] + [UInt8](repeating: 7, count: 12)

    /// A header with a stated length.
    static func header(_ family: UInt8, _ rest: [UInt8], command: UInt8 = 0x21) -> [UInt8] {
        signature + [command, family, UInt8(rest.count >> 8), UInt8(rest.count & 0xFF)] + rest
    }

    static func tcp4(_ extensions: [UInt8] = []) -> [UInt8] {
        header(0x11, client4 + [198, 51, 100, 2] + ports + extensions)
    }

    static func tcp6(_ extensions: [UInt8] = []) -> [UInt8] {
        header(0x21, client6 + [UInt8](repeating: 9, count: 16) + ports + extensions)
    }

    private func read(_ bytes: [UInt8]) -> ProxyHeader.Progress {
        bytes.withUnsafeBytes { ProxyHeader.read($0) }
    }

    private func complete(_ client: [UInt8]?, _ count: Int) -> ProxyHeader.Progress {
        .complete(ProxyHeader(client: client.map { SourceAddress(ip: $0) }, byteCount: count))
    }

    @Test func `the client's address is read, and what follows the header is left`() {
        #expect(read(Self.tcp4()) == complete(Self.client4, 28))
        #expect(read(Self.tcp4() + [22, 3, 1]) == complete(Self.client4, 28))
        #expect(read(Self.tcp6() + Self.tcp4()) == complete(Self.client6, 52))
        let mapped = [UInt8](repeating: 0, count: 10) + [255, 255] + Self.client4
        let header = Self.header(0x21, mapped + mapped + Self.ports)
        #expect(read(header) == complete(Self.client4, 52))
    }

    @Test func `every beginning of a header waits for the rest`() {
        for header in [Self.tcp4([4, 0, 2, 0, 0]), Self.tcp6(), Self.header(0, [], command: 0x20)] {
            for count in 0..<header.count {
                #expect(read(Array(header[..<count])) == .incomplete, "\(count)")
            }
        }
    }

    @Test func `every command, version, family and transport is judged`() {
        let rest = [UInt8](repeating: 1, count: 216)
        for command in UInt8.min...UInt8.max {
            for family in UInt8.min...UInt8.max {
                let progress = read(Self.header(family, rest, command: command))
                let isKnown =
                    (command == 0x20 || command == 0x21) && family >> 4 <= 3 && family & 15 <= 2
                guard isKnown else {
                    #expect(progress == .invalid(.unknown), "\(command) \(family)")
                    continue
                }
                guard case .complete(let header) = progress else {
                    // The ones are no extensions of the shorter families.
                    #expect(progress == .invalid(.malformed) && family >> 4 < 3)
                    continue
                }
                #expect(header.client == nil && header.byteCount == 232)
            }
        }
    }

    @Test func `a proxy's own connection and other transports have no client`() {
        let four = Self.client4 + Self.client4 + Self.ports
        #expect(read(Self.header(0x11, four, command: 0x20)) == complete(nil, 28))
        #expect(read(Self.header(0x00, [], command: 0x20)) == complete(nil, 16))
        #expect(read(Self.header(0x00, [])) == complete(nil, 16))
        #expect(read(Self.header(0x00, [4, 0, 1, 0])) == complete(nil, 20))
        #expect(read(Self.header(0x12, four)) == complete(nil, 28))
        #expect(read(Self.header(0x10, four)) == complete(nil, 28))
        let paths = [UInt8](repeating: 0x61, count: 216)
        #expect(read(Self.header(0x31, paths)) == complete(nil, 232))
    }

    @Test func `other bytes are refused at the first that differs`() {
        #expect(read([22, 3, 1, 2, 0]) == .invalid(.missing))
        #expect(read(Array("GET / HTTP/1.1\r\n".utf8)) == .invalid(.missing))
        #expect(read(Array("PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n".utf8)) == .invalid(.textual))
        #expect(read(Array("PROXZ".utf8)) == .invalid(.missing))
        for index in Self.signature.indices {
            var bytes = Self.signature
            bytes[index] ^= 1
            #expect(read(bytes) == .invalid(.missing), "\(index)")
            #expect(read(Array(bytes[...index])) == .invalid(.missing), "\(index)")
        }
    }

    @Test func `a header is bounded`() {
        func padded(_ count: Int) -> [UInt8] {
            Self.tcp4(
                [4, UInt8((count - 31) >> 8), UInt8((count - 31) & 0xFF)]
                    + [UInt8](repeating: 0, count: count - 31))
        }
        #expect(read(padded(ProxyHeader.bytesMax)) == complete(Self.client4, 4_112))
        let long = padded(ProxyHeader.bytesMax + 1)
        #expect(read(long) == .invalid(.tooLong))
        #expect(read(Array(long[..<16])) == .invalid(.tooLong))
    }

    @Test func `extensions are skipped, but must be whole`() {
        #expect(
            read(Self.tcp4([0xEA, 0, 3, 1, 2, 3, 0xE0, 0, 0])) == complete(Self.client4, 37))
        for broken: [UInt8] in [[1], [1, 0], [1, 0, 1], [1, 0, 2, 0], [1, 255, 255, 0]] {
            #expect(read(Self.tcp4(broken)) == .invalid(.malformed), "\(broken)")
        }
        for family: UInt8 in [0x11, 0x21, 0x31] {
            #expect(read(Self.header(family, [1, 2, 3])) == .invalid(.malformed))
        }
    }

    @Test func `a checksum is verified`() {
        // Computed by another implementation (table-driven, Python).
        let checksum: [UInt8] = [0xC8, 0xCC, 0xD4, 0xB7]
        let good = Self.tcp4([3, 0, 4] + checksum)
        #expect(read(good) == complete(Self.client4, 35))
        for index in 16..<good.count where !(28...30).contains(index) {
            var bad = good
            bad[index] ^= 0x10
            #expect(read(bad) == .invalid(.checksum), "\(index)")
        }
        #expect(read(Self.tcp4([3, 0, 3, 1, 2, 3])) == .invalid(.malformed))
        let twice = [3, 0, 4] + checksum + [3, 0, 4] + checksum
        #expect(read(Self.tcp4(twice)) == .invalid(.malformed))
    }

    @Test func `whatever a proxy sends is judged alike in one piece and in many`() {
        var random = SplitMix64(seed: 11)
        for _ in 0..<4_000 {
            var bytes =
                [Self.tcp4([4, 0, 1, 0]), Self.tcp6(), Self.header(0, [], command: 0x20)]
                .randomElement(using: &random) ?? []
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                let index = Int.random(in: 10..<bytes.count, using: &random)
                bytes[index] = UInt8.random(in: .min ... .max, using: &random)
            }
            let whole = read(bytes)
            var piecemeal = ProxyHeader.Progress.incomplete
            for count in 0...bytes.count where piecemeal == .incomplete {
                piecemeal = read(Array(bytes[..<count]))
            }
            #expect(whole == piecemeal)
            if case .complete(let header) = whole { #expect(header.byteCount <= bytes.count) }
        }
    }
}
