import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct IPAddressTests {
    /// Returns the bytes of an address as the system reads them. The type must accept exactly the
    /// same texts.
    static func system(_ text: String) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, text, &bytes) == 1 { return Array(bytes.prefix(4)) }
        return inet_pton(AF_INET6, text, &bytes) == 1 ? bytes : nil
    }

    @Test(arguments: [
        "1.2.3.4", "0.0.0.0", "255.255.255.255", "::", "::1", "1::", "1::8", "1:2:3:4:5:6:7:8",
        "::2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "2001:DB8::ff", "::ffff:10.0.0.1",
        "64:ff9b::1.2.3.4", "1:2:3:4:5:6:1.2.3.4", "fe80::1",
    ])
    func `what the system reads is read alike`(text: String) throws {
        let address = try #require(IPAddress(text))
        #expect(address.bytes == Self.system(text))
        #expect(IPAddress(bytes: address.bytes) == address)
    }

    @Test(arguments: [
        "", "1", "1.2.3", "1.2.3.4.5", "1.2.3.256", "01.2.3.4", "1.2.3.4 ", "0x7f.0.0.1", "1..2.3",
        "+1.2.3.4", ":", ":::", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3", "12345::",
        "::1%eth0", "[::1]", "g::", "1:2:3:4:5:6:7:1.2.3.4", "::1.2.3", "1.2.3.4::", "::1.2.3.4:5",
        "1:", ":1", "1:2:3:4::5:6:7:8", "::ffff:1.2.3.04", "1.2.3.4\0", "::1\0",
    ])
    func `nothing else is an address`(text: String) {
        #expect(IPAddress(text) == nil)
    }

    /// Compares the type with the system on texts made of an address's characters, most of them no
    /// addresses.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func `any text is what it is for the system`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let pieces = ["0", "1", "a", "ff", "255", "10", ":", "::", ".", ":", ".", "FFFF"]
        for _ in 0..<20_000 {
            let text = (0..<1 + random.below(16)).map { _ in random.pick(pieces) }.joined()
            #expect(IPAddress(text)?.bytes == Self.system(text), "\(text)")
        }
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `an address is read from what it is written as`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<2_000 {
            let count = random.pick([4, 16])
            let bytes = (0..<count).map { _ in
                random.happens(60) ? 0 : UInt8(truncatingIfNeeded: random.next())
            }
            let address = IPAddress(bytes: bytes)
            let text = address.map { "\($0)" } ?? ""
            #expect(IPAddress(text) == address && Self.system(text) == bytes, "\(text)")
        }
    }

    @Test(arguments: [
        ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"), ("1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"),
        ("0:0:0:0:0:0:0:0", "::"), ("::FFFF:1.2.3.4", "::ffff:1.2.3.4"), ("1:0:0:0:0:0:0:0", "1::"),
        ("0:0:1:0:0:0:0:1", "0:0:1::1"),
    ])
    func `an address is written as RFC 5952 recommends`(text: String, written: String) {
        #expect(IPAddress(text).map { "\($0)" } == written)
    }

    @Test(arguments: [
        ("::ffff:10.0.0.1", "10.0.0.1"), ("64:ff9b::127.0.0.1", "127.0.0.1"),
        ("2002:a9fe:a9fe::1", "169.254.169.254"), ("2002::", "0.0.0.0"),
        ("64:ff9b:1::1.2.3.4", nil), ("::1.2.3.4", nil), ("2001:db8::1", nil), ("1.2.3.4", nil),
        ("::fffe:1.2.3.4", nil), ("2003:102:304::", nil),
    ])
    func `what stands for an address of version 4 is known`(text: String, inside: String?) {
        #expect(IPAddress(text)?.embedded == inside.flatMap { IPAddress($0) })
    }

    @Test(arguments: [
        ("10.0.0.0/8", "10.0.0.0", "10.255.255.255"), ("0.0.0.0/0", "0.0.0.0", "255.255.255.255"),
        ("192.0.2.1", "192.0.2.1", "192.0.2.1"), ("fc00::/7", "fc00::", "fdff:\(ones)"),
        ("::/0", "::", "ffff:\(ones)"), ("2001:db8::/32", "2001:db8::", "2001:db8:\(onesOf6)"),
    ])
    func `a range has its first address and its last, and none beside`(
        text: String, first: String, last: String
    ) throws {
        let range = try #require(AddressRange(text))
        for inside in [first, last] {
            #expect(range.contains(try #require(IPAddress(inside))))
        }
        for (edge, step) in [(first, -1), (last, 1)] {
            let edge = try #require(IPAddress(edge))
            guard let outside = edge.advanced(by: step) else { continue }
            #expect(!range.contains(outside), "\(outside)")
        }
        #expect(range.contains(.v4(0)) == false || text == "0.0.0.0/0")
    }

    static let ones = Array(repeating: "ffff", count: 7).joined(separator: ":")
    static let onesOf6 = Array(repeating: "ffff", count: 6).joined(separator: ":")

    @Test(arguments: [
        "", "/", "10.0.0.0/", "10.0.0.0/33", "10.0.0.1/8", "::/129", "fe80::1/10", "10.0.0.0/8/8",
        "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/ 8", "10/8", "host", "10.0.0.0/0008",
    ])
    func `nothing else is a range`(text: String) {
        #expect(AddressRange(text) == nil)
    }
}

extension IPAddress {
    /// Returns the address before or after this one, or `nil` beyond the first and the last.
    func advanced(by step: Int) -> IPAddress? {
        switch self {
        case .v4(let bits):
            let (sum, overflow) =
                step < 0 ? bits.subtractingReportingOverflow(1) : bits.addingReportingOverflow(1)
            return overflow ? nil : .v4(sum)
        case .v6(let bits):
            let (sum, overflow) =
                step < 0 ? bits.subtractingReportingOverflow(1) : bits.addingReportingOverflow(1)
            return overflow ? nil : .v6(sum)
        }
    }
}
