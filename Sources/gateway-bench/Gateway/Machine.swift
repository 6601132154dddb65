import CLinux
import Glibc

/// What is asked of the kernel for this process.
enum Machine {
    /// Descriptors needed beside one for each stream.
    static let descriptorsReserve = 200

    /// Raises this process's limit of open files as far as it may be, which the processes it
    /// starts inherit; returns the limit.
    static func raiseDescriptorLimit() -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            return 1024
        }
        limit.rlim_cur = limit.rlim_max
        _ = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        _ = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return Int(exactly: limit.rlim_cur) ?? .max
    }

    /// Bytes of a mask of cores: up to 1,024 of them.
    private static let coreMaskBytes = 128

    /// The cores this thread may run on, ascending.
    static func allowedCores() -> [Int] {
        var mask = [UInt8](repeating: 0, count: coreMaskBytes)
        guard gateway_get_affinity(&mask, UInt(mask.count)) > 0 else { return [0] }
        return (0..<mask.count * 8).filter { mask[$0 / 8] & (1 << UInt8($0 % 8)) != 0 }
    }

    /// Lets this thread, and what it starts from now on, run on `cores` only.
    ///
    /// - Throws: ``BenchFailure`` when the machine has none of them.
    static func pin(to cores: [Int]) throws {
        var mask = [UInt8](repeating: 0, count: coreMaskBytes)
        for core in cores where core < mask.count * 8 { mask[core / 8] |= 1 << UInt8(core % 8) }
        guard gateway_set_affinity(mask, UInt(mask.count)) == 0 else {
            let reason = String(cString: strerror(errno))
            throw BenchFailure("the cores \(cores) cannot be used: \(reason)")
        }
    }

    /// A port of 127.0.0.1 that nobody listens on now.
    static func freePort() throws -> UInt16 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in(loopback: 1, port: 0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = address.withSockaddr { bind(descriptor, $0, $1) } == 0
        guard isBound,
            address.withMutableSockaddr({ getsockname(descriptor, $0, &length) }) == 0
        else { throw BenchFailure("no free port: \(String(cString: strerror(errno)))") }
        return UInt16(bigEndian: address.sin_port)
    }

    /// Kernel, cores and so on, for the report.
    static func describe() -> [(String, String)] {
        var name = utsname()
        uname(&name)
        let release = withUnsafeBytes(of: &name.release) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        return [
            ("kernel", release), ("cores", allowedCores().map(String.init).joined(separator: ",")),
        ]
    }
}

extension sockaddr_in {
    /// The port of 127.0.0.`host`.
    init(loopback host: UInt8, port: UInt16) {
        self.init()
        sin_family = sa_family_t(AF_INET)
        sin_port = port.bigEndian
        sin_addr.s_addr = (0x7F00_0000 | UInt32(host)).bigEndian
    }

    // Sound, both: a `sockaddr_in` is what the calls take as `sockaddr`, and the pointer does not
    // leave the closure.
    func withSockaddr<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        withUnsafePointer(to: self) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    mutating func withMutableSockaddr<Result>(
        _ body: (UnsafeMutablePointer<sockaddr>) -> Result
    ) -> Result {
        withUnsafeMutablePointer(to: &self) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0) }
        }
    }
}
