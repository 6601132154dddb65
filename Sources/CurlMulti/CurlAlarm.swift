import Foundation

/// Wakes a thread that waits for its descriptor.
struct CurlAlarm: Sendable {
    /// The descriptor to wait for; readable once the alarm has been rung.
    let descriptor: Int32
    private let other: Int32

    /// Returns `nil` when the process has no descriptors left.
    init?() {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return nil }
        for end in ends {
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        (descriptor, other) = (ends[0], ends[1])
    }

    /// Rings the alarm. May be called on any thread.
    func ring() {
        // A full pipe is readable already.
        _ = write(other, [1], 1)
    }

    /// Resets the alarm.
    func silence() {
        var bytes = [UInt8](repeating: 0, count: 64)
        while read(descriptor, &bytes, bytes.count) == bytes.count {}
    }

    /// Frees both descriptors; the alarm must not be rung any more.
    func free() {
        close(descriptor)
        close(other)
    }
}
