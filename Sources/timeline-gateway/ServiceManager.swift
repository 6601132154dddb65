import Foundation

/// The service manager that started this program.
enum ServiceManager {
    /// Tells it that the gateway accepts connections, if it waits for that: sd_notify(3).
    static func ready() {
        guard let path = ProcessInfo.processInfo.environment["NOTIFY_SOCKET"] else { return }
        // An abstract address begins with a zero, which the environment cannot contain.
        var name = Array(path.utf8)
        if name.first == UInt8(ascii: "@") { name[0] = 0 }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        guard name.count <= MemoryLayout.size(ofValue: address.sun_path) else {
            return complain("NOTIFY_SOCKET is too long: \(path)")
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        let length = MemoryLayout.size(ofValue: address.sun_family) + name.count
        let socket = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        defer { close(socket) }
        let message = Array("READY=1".utf8)
        // Sound: the call reads a `sockaddr_un`, and the pointer does not leave the closure.
        let sent = withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(socket, message, message.count, 0, $0, socklen_t(length))
            }
        }
        if sent < 0 { complain("NOTIFY_SOCKET \(path): \(String(cString: strerror(errno)))") }
    }
}
