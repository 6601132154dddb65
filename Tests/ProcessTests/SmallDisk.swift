import Foundation
import GatewayTestSupport
import Testing

/// A file system of its own with a size, which takes root to mount; gone with the value.
final class SmallDisk: Sendable {
    let path: String

    /// Whether tests may mount. Where they may not they are left out, but never in CI: a check that
    /// cannot run there fails.
    static var isPossible: Bool {
        if ProcessInfo.processInfo.environment["CI"] == "true" { return true }
        return (try? SmallDisk(megabytes: 1)) != nil
    }

    init(megabytes: Int) throws {
        path = NSTemporaryDirectory() + "small-disk-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        guard mount("tmpfs", path, "tmpfs", 0, "size=\(megabytes)m,mode=700") == 0 else {
            let reason = String(cString: strerror(errno))
            try? FileManager.default.removeItem(atPath: path)
            throw WireFault(what: "no tmpfs can be mounted: \(reason)")
        }
    }

    /// Gives the disk another size.
    func resize(megabytes: Int) throws {
        let remount: UInt = 32
        guard mount("tmpfs", path, "tmpfs", remount, "size=\(megabytes)m") == 0 else {
            throw WireFault(
                what: "the tmpfs cannot be resized: \(String(cString: strerror(errno)))")
        }
    }

    deinit {
        let detach: Int32 = 2
        umount2(path, detach)
        try? FileManager.default.removeItem(atPath: path)
    }
}
