import Glibc
import NIOCore

/// The address that requests come from, as far as limits tell addresses apart: an IPv4 address, or
/// the /64 network of an IPv6 address, which is what one site has.
struct SourceAddress: Hashable, Sendable {
    private let bits: UInt64
    private let isV6: Bool

    /// `nil` for what has no IP address.
    init?(_ address: SocketAddress?) {
        switch address {
        case .v4(let address)?:
            bits = UInt64(UInt32(bigEndian: address.address.sin_addr.s_addr))
            isV6 = false
        case .v6(let address)?:
            var bytes = address.address.sin6_addr
            let all = withUnsafeBytes(of: &bytes) { Array($0) }
            func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
                bytes.reduce(0) { $0 << 8 | UInt64($1) }
            }
            // An IPv4 address in IPv6's clothes (RFC 4291 section 2.5.5.2).
            isV6 = !(all[..<10].allSatisfy { $0 == 0 } && all[10] == 0xFF && all[11] == 0xFF)
            bits = isV6 ? number(all[..<8]) : number(all[12...])
        case .unixDomainSocket?, nil:
            return nil
        }
    }
}
