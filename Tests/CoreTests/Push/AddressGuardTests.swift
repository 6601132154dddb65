import GatewayTestSupport
import Testing

@testable import GatewayCore

@Suite struct AddressGuardTests {
    typealias Rejection = AddressGuard.Rejection

    static func refusal(_ text: String, allowed: [String] = []) throws -> Rejection? {
        let ranges = try allowed.map { try #require(AddressRange($0)) }
        return AddressGuard(allowed: ranges).refusal(of: try #require(IPAddress(text)))
    }

    /// Covers every refused range, with its edges and the addresses next to it.
    @Test(arguments: [
        ("0.0.0.0/8", "-", "1.0.0.0"), ("10.0.0.0/8", "9.255.255.255", "11.0.0.0"),
        ("100.64.0.0/10", "100.63.255.255", "100.128.0.0"),
        ("127.0.0.0/8", "126.255.255.255", "128.0.0.0"),
        ("168.63.129.16/32", "168.63.129.15", "168.63.129.17"),
        ("169.254.0.0/16", "169.253.255.255", "169.255.0.0"),
        ("172.16.0.0/12", "172.15.255.255", "172.32.0.0"),
        ("192.0.0.0/24", "191.255.255.255", "192.0.1.0"),
        ("192.0.2.0/24", "192.0.1.255", "192.0.3.0"),
        ("192.88.99.0/24", "192.88.98.255", "192.88.100.0"),
        ("192.168.0.0/16", "192.167.255.255", "192.169.0.0"),
        ("198.18.0.0/15", "198.17.255.255", "198.20.0.0"),
        ("198.51.100.0/24", "198.51.99.255", "198.51.101.0"),
        ("203.0.113.0/24", "203.0.112.255", "203.0.114.0"),
        ("224.0.0.0/3", "223.255.255.255", "-"),
        ("::/3", "-", "2400::"), ("2001::/23", "2000:ffff::", "2001:200::"),
        ("2001:db8::/32", "2001:db7:ffff::", "2001:db9::"),
        ("3fff::/20", "3ffe:ffff::", "3fff:1000::"),
        ("4000::/2", "3fff:ffff:ffff::", "-"), ("8000::/1", "3fff:ffff:ffff::", "-"),
    ])
    func `a range is refused from its first address to its last`(
        text: String, before: String, after: String
    ) throws {
        let range = try #require(AddressRange(text))
        let guarding = AddressGuard()
        #expect(guarding.refusal(of: range.first) != nil)
        #expect(guarding.refusal(of: range.last) != nil)
        for beside in [before, after] where beside != "-" {
            #expect(try Self.refusal(beside) == nil, "\(beside)")
        }
        // The same addresses, embedded in version 6.
        guard case .v4(let first) = range.first, case .v4(let last) = range.last else { return }
        for bits in [first, last] {
            for prefix in [0xFFFF, 0x64_FF9B << 64] as [UInt128] {
                #expect(guarding.refusal(of: .v6(prefix << 32 | UInt128(bits))) != nil)
            }
            let relayed = UInt128(0x2002) << 112 | UInt128(bits) << 80 | 1
            #expect(guarding.refusal(of: .v6(relayed)) != nil)
        }
    }

    @Test(arguments: [
        ("0.0.0.0", Rejection.unspecified), ("127.0.0.1", .loopback), ("10.1.2.3", .privateUse),
        ("100.64.0.1", .shared), ("100.100.100.200", .metadata), ("169.254.1.1", .linkLocal),
        ("169.254.169.254", .metadata), ("168.63.129.16", .metadata), ("192.0.0.192", .metadata),
        ("224.0.0.1", .multicast), ("255.255.255.255", .reserved), ("192.0.2.1", .documentation),
        ("198.18.0.1", .benchmarking), ("::", .unspecified), ("::1", .loopback),
        ("fd00::1", .privateUse), ("fd00:ec2::254", .metadata), ("fe80::1", .linkLocal),
        ("fec0::1", .reserved), ("ff02::1", .multicast), ("2001:db8::1", .documentation),
        ("2001::1", .reserved), ("2001:2::1", .benchmarking), ("::7f00:1", .reserved),
        ("::ffff:127.0.0.1", .loopback), ("64:ff9b::a9fe:a9fe", .metadata),
        ("64:ff9b:1::1", .reserved), ("2002:7f00:1::", .loopback), ("100::1", .reserved),
        ("5f00::1", .reserved),
    ])
    func `a refusal says why`(text: String, refusal: Rejection) throws {
        #expect(try Self.refusal(text) == refusal)
    }

    @Test(arguments: [
        "1.1.1.1", "8.8.8.8", "17.188.143.65", "93.184.215.14", "2606:4700::1111", "2a00:1450::1",
        "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1",
    ])
    func `the public Internet passes`(text: String) throws {
        #expect(try Self.refusal(text) == nil)
    }

    @Test func `what an operator allows passes, in whatever form, and nothing else`() throws {
        let allowed = ["10.1.0.0/16", "fd12::/16"]
        for text in ["10.1.0.0", "10.1.255.255", "::ffff:10.1.2.3", "64:ff9b::a01:203", "fd12::1"] {
            #expect(try Self.refusal(text, allowed: allowed) == nil, "\(text)")
        }
        for text in ["10.0.255.255", "10.2.0.0", "::ffff:10.2.0.0", "fd13::", "fd11:ffff::"] {
            #expect(try Self.refusal(text, allowed: allowed) == .privateUse, "\(text)")
        }
    }

    /// Compares all of version 4, by its first two bytes, with the ranges as a person would write
    /// them.
    @Test func `no other part of version 4 is refused`() {
        let guarding = AddressGuard()
        for high in 0..<65_536 as Range<UInt32> {
            let (a, b) = (high >> 8, high & 0xFF)
            let isWhole =
                a == 0 || a == 10 || a == 127 || a >= 224 || (a == 100 && (64..<128).contains(b))
                || (a == 169 && b == 254) || (a == 172 && (16..<32).contains(b))
                || (a == 192 && b == 168) || (a == 198 && (18...19).contains(b))
            // The third byte is 5, which is in none of the narrower ranges.
            let isRefused = guarding.refusal(of: .v4(high << 16 | 0x0505)) != nil
            #expect(isRefused == isWhole, "\(a).\(b)")
        }
    }

    @Test func `every range of the table can be read`() {
        #expect(AddressGuard.specialCount == 30)
    }
}

extension AddressRange {
    /// The last address of the range.
    var last: IPAddress {
        switch first {
        case .v4(let bits): .v4(bits | (prefixLength == 32 ? 0 : .max >> UInt32(prefixLength)))
        case .v6(let bits): .v6(bits | (prefixLength == 128 ? 0 : .max >> UInt128(prefixLength)))
        }
    }
}
