import Foundation

/// Wakes a thread that waits for its descriptor.
struct CurlAlarm: Sendable {
    /// Readable once the alarm was rung.
    let descriptor: Int32
    private let other: Int32

    /// `nil` when the process has too many descriptors.
    init?() {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return nil }
        for end in ends {
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        (descriptor, other) = (ends[0], ends[1])
    }

    /// Rings, from any thread.
    func ring() {
        // A full pipe rings already.
        _ = write(other, [1], 1)
    }

    /// Makes it silent again.
    func silence() {
        var bytes = [UInt8](repeating: 0, count: 64)
        while read(descriptor, &bytes, bytes.count) == bytes.count {}
    }

    /// Frees both descriptors; nobody may ring any more.
    func free() {
        close(descriptor)
        close(other)
    }
}
