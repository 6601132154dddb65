import GatewayTestSupport
import Glibc
import NIOCore
import Testing

@testable import GatewayTLS

/// The number of connections in total and by source address.
@Suite(.serialized) struct ConnectionLimitTests {
    private let servers = TestServers()

    private func address(_ bytes: [UInt8], family: Int32) -> SourceAddress {
        let head = withUnsafeBytes(of: sa_family_t(family)) { Array($0) }
        return (head + bytes).withUnsafeBytes { SourceAddress($0) }
    }

    private func ipv4(_ last: UInt8, port: UInt8 = 1) -> SourceAddress {
        address([0, port, 192, 0, 2, last] + [UInt8](repeating: 0, count: 8), family: AF_INET)
    }

    private func ipv6(_ host: [UInt8]) -> SourceAddress {
        address([0, 1, 0, 0, 0, 0] + host + [0, 0, 0, 0], family: AF_INET6)
    }

    @Test func addressesAreToldApartByTheirNetworks() {
        #expect(ipv4(1) == ipv4(1, port: 2))
        #expect(ipv4(1) != ipv4(2))
        let network: [UInt8] = [0x20, 1, 0x0D, 0xB8, 0, 1, 0, 2]
        let tail = [UInt8](repeating: 9, count: 8)
        #expect(ipv6(network + tail) == ipv6(network + tail.reversed().map { $0 &+ 1 }))
        #expect(ipv6(network + tail) != ipv6(network.dropLast() + [3] + tail))
        // An IPv4 address is the same on a socket of either family.
        let mapped = [UInt8](repeating: 0, count: 10) + [255, 255, 192, 0, 2, 1]
        #expect(ipv6(mapped) == ipv4(1))
        for bytes: [UInt8] in [[], [2], [2, 0], [10, 0, 1, 1, 1], [99, 99, 1, 1]] {
            #expect(bytes.withUnsafeBytes { SourceAddress($0) } == .unknown)
        }
    }

    @Test func eachAddressHasItsShareAndTheMapIsBounded() throws {
        let limit = ConnectionLimit(10, perAddress: 2)
        var permits: [ConnectionPermit] = []
        for host in UInt8(0)..<5 {
            for _ in 0..<2 {
                #expect(limit.take())
                permits.append(try #require(limit.permit(for: ipv4(host))))
            }
        }
        #expect(!limit.take())
        #expect(limit.addressCount == 5)
        permits.removeLast().release()
        #expect(limit.take())
        #expect(limit.permit(for: ipv4(0)) == nil)
        #expect(limit.permit(for: ipv4(4)) != nil)
        for permit in permits { permit.release() }
        #expect(limit.taken == 1)
        #expect(limit.addressCount == 1)
    }

    @Test func addressesAreNotCountedWithoutALimit() throws {
        let limit = ConnectionLimit(3, perAddress: 3)
        let permits = try (0..<3).map { _ in
            #expect(limit.take())
            return try #require(limit.permit(for: ipv4(1)))
        }
        #expect(limit.addressCount == 0)
        for permit in permits { permit.release() }
        #expect(limit.taken == 0)
    }

    /// Beyond the limit in total connections wait, and it is said why.
    @Test func moreConnectionsInTotalWait() throws {
        let said = Record<[ConnectionRefusal]>([])
        let server = try servers.start {
            $0.connectionsMax = 1
            $0.settings.onRefusal = { refusal, _ in said.change { $0.append(refusal) } }
        }
        let first = try server.client().handshake()
        let second = try server.client()
        said.wait("it is full") { !$0.isEmpty }
        #expect(said.now.allSatisfy { $0 == .connections })
        #expect(server.counters.snapshot().connectionsRefused[.connections] ?? 0 > 0)
        #expect(server.limit.waits > 0)
        first.shutdownSending()
        let connection = try server.connection()
        try connection.channel.close().wait()
        try second.handshake()
        second.shutdownSending()
    }

    /// Beyond the limit a connection is closed before TLS; streams count until they end.
    @Test func moreConnectionsFromOneAddressAreClosed() throws {
        let said = Record<[SourceAddress?]>([])
        let house = try servers.house {
            $0.connectionsPerAddressMax = 2
            $0.settings.onRefusal = { _, address in said.change { $0.append(address) } }
        }
        let (first, stream) = try house.stream(0)
        let (second, connection) = try house.connect(1)
        house.server.waitForAccepted(2)
        #expect(throws: TestFailure.self) { try house.server.client().handshake() }
        #expect(house.server.counters.snapshot().connectionsRefused[.address] == 1)
        said.wait("it is said") { $0 == [SourceAddress(ip: [127, 0, 0, 1])] }
        try stream.close()
        house.server.waitForAccepted(1)
        let (third, _) = try house.connect(2)
        house.server.waitForAccepted(2)
        #expect(throws: TestFailure.self) { try house.server.client().handshake() }
        try connection.onLoop { _ in connection.channel.close(promise: nil) }
        for client in [first, second, third] { client.shutdownSending() }
    }
}

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
