import Glibc

extension GatewayProcess {
    /// Returns a TCP port of 127.0.0.1 on which nothing listens.
    ///
    /// It lies below the range from which Linux takes the ports of outgoing connections
    /// (`ip_local_port_range`, from 32768 on), so that no connection made before it is used can
    /// occupy it.
    package static func freePort() throws -> UInt16 {
        for _ in 0..<100 {
            let port = UInt16.random(in: 10_000..<32_768)
            if isFree(port) { return port }
        }
        throw GatewayProcessError("no port is free")
    }

    private static func isFree(_ port: UInt16) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        // Sound: the address is rebound for the call alone, with its own size.
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }
}
