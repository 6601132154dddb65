import Foundation

/// A file system in memory of a few megabytes, which takes root to mount; gone with the value.
package final class SmallDisk: Sendable {
    /// The directory that it is mounted on.
    package let path: String
    private var ballast: String { path + "/ballast" }

    /// Whether tests may mount. Where they may not they are left out, but never in CI: a check that
    /// cannot run there fails.
    package static var isPossible: Bool {
        if ProcessInfo.processInfo.environment["CI"] == "true" { return true }
        return (try? SmallDisk(megabytes: 1)) != nil
    }

    /// Mounts one. Throws ``TestFailure`` where nothing may be mounted.
    package init(megabytes: Int) throws {
        path = try GatewayProcess.temporaryDirectory()
        guard mount("tmpfs", path, "tmpfs", 0, "size=\(megabytes)m,mode=700") == 0 else {
            throw TestFailure("no tmpfs can be mounted: \(String(cString: strerror(errno)))")
        }
    }

    /// Gives the disk another size.
    package func resize(megabytes: Int) throws {
        let remount: UInt = 32
        guard mount("tmpfs", path, "tmpfs", remount, "size=\(megabytes)m") == 0 else {
            throw TestFailure("the tmpfs cannot be resized: \(String(cString: strerror(errno)))")
        }
    }

    /// Takes all but a few bytes of the room that is left.
    package func fill(leaving bytes: Int = 0) throws {
        let descriptor = open(ballast, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw TestFailure("no ballast: \(errno)") }
        defer { close(descriptor) }
        for size in [1 << 20, 1 << 12, 1] {
            let block = [UInt8](repeating: 0, count: size)
            while write(descriptor, block, size) == size {}
        }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return }
        ftruncate(descriptor, max(0, status.st_size - bytes))
    }

    /// Gives the room back.
    package func free() { unlink(ballast) }

    /// Takes the file system away; what still runs on it keeps its open files.
    package func unmount() {
        let detach: Int32 = 2
        umount2(path, detach)
        GatewayProcessLeftovers.remove(path: path)
    }

    deinit { unmount() }
}
