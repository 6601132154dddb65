import Glibc
import Synchronization

extension sockaddr_in {
    /// The port of 127.0.0.`host`.
    package init(loopback host: UInt8, port: UInt16) {
        self.init()
        sin_family = sa_family_t(AF_INET)
        sin_port = port.bigEndian
        sin_addr.s_addr = (0x7F00_0000 | UInt32(host)).bigEndian
    }

    /// Calls `body` with the address as the socket calls take it.
    package func withSockaddr<Result>(
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        // Sound: a `sockaddr_in` is what the calls take, and the pointer does not leave the closure.
        withUnsafePointer(to: self) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
}

private let portTurns = Atomic(0)

extension GatewayProcess {
    /// Returns an address for the admin port of a daemon that is about to start.
    package static func freeAddress() throws -> String { "127.0.0.1:\(try freePort())" }

    /// Returns a TCP port of 127.0.0.1 on which nothing listens.
    ///
    /// It lies below Linux's range for ports of outgoing connections (`ip_local_port_range`, from
    /// 32768 on), which could occupy it otherwise. Each process takes a hundred ports of its own in
    /// turn, so that no other is given the same one meanwhile.
    package static func freePort() throws -> UInt16 {
        for _ in 0..<100 {
            let turn = portTurns.wrappingAdd(1, ordering: .relaxed).newValue % 100
            let port = UInt16(10_000 + Int(getpid()) % 227 * 100 + turn)
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(descriptor) }
            let address = sockaddr_in(loopback: 1, port: port)
            if address.withSockaddr({ bind(descriptor, $0, $1) }) == 0 { return port }
        }
        throw TestFailure("no port is free")
    }
}

/// Repeats a system call, or a call of OpenSSL that makes one, until it was not interrupted. Calls on
/// a socket with a timeout are, when the process was stopped for a moment.
package func uninterrupted<Count: BinaryInteger>(_ call: () -> Count) -> Count {
    let end = ContinuousClock.now + Patience.duration
    while true {
        errno = 0
        let count = call()
        // An interrupted call begins its own time-out anew.
        if count > 0 || errno != EINTR || ContinuousClock.now > end { return count }
    }
}

/// Raises this process's limit of open files to its maximum, which the processes it starts inherit;
/// returns the limit.
package func raiseDescriptorLimit() -> Int {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
    limit.rlim_cur = limit.rlim_max
    _ = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    _ = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    return Int(exactly: limit.rlim_cur) ?? .max
}
