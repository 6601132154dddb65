import Foundation
import GatewayTestSupport

/// A file system in memory of a few megabytes, which can be filled. Needs root.
final class SmallDisk {
    let path: String
    private var ballast: String { path + "/ballast" }

    /// - Throws: ``RowSkipped`` where nothing may be mounted.
    init(megabytes: Int) throws {
        path = try GatewayProcess.temporaryDirectory()
        let (exit, output) = try GatewayProcess.run(
            ["mount", "-t", "tmpfs", "-o", "size=\(megabytes)m", "faults", path],
            program: "/usr/bin/env")
        guard exit == .status(0) else { throw RowSkipped(reason: "no tmpfs: \(output)") }
    }

    /// Takes the file system away; what still runs on it keeps its open files.
    func unmount() {
        _ = try? GatewayProcess.run(["umount", "-l", path], program: "/usr/bin/env")
    }

    /// Takes all but a few bytes of the room that is left.
    func fill(leaving bytes: Int = 0) throws {
        let descriptor = open(ballast, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw WireFault(what: "no ballast: \(errno)") }
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
    func free() {
        unlink(ballast)
    }
}
