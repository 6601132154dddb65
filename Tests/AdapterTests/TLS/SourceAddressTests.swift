import NIOCore
import Testing

@testable import GatewayTLS

@Suite struct SourceAddressTests {
    @Test(arguments: [
        ("192.0.2.1", "192.0.2.1"), ("0.0.0.0", "0.0.0.0"), ("255.255.255.255", "255.255.255.255"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"), ("::ffff:192.0.2.1", "192.0.2.1"),
        ("::1", "0:0:0:0::/64"),
    ])
    func `an address has a text for a log`(_ address: String, _ text: String) throws {
        let source = try SocketAddress(ipAddress: address, port: 1).withSockAddr {
            SourceAddress(UnsafeRawBufferPointer(start: $0, count: $1))
        }
        #expect(source.description == text)
    }

    @Test func `an unknown address has a text, too`() {
        #expect("\(SourceAddress.unknown)" == "unknown")
    }
}
