import GatewayCore
import GatewayStorage
import WidgetModel

/// The free space of a copy's destination.
enum FreeSpace {
    /// The free bytes below which a disk counts as full: less than a few small files need.
    private static let exhaustedBytes: Int64 = 64 << 10
    /// The space that files need in addition to their bytes.
    private static let slackBytes: Int64 = 256 << 10

    /// Checks that a disk has room for `bytes` more. Throws ``Faults`` if it has not.
    ///
    /// - Parameters:
    ///   - option: The option that names the directory.
    ///   - subject: The name of the data to write.
    static func require(
        _ bytes: Int64, in directory: String, option: String, of subject: String
    ) throws(Faults) {
        guard let free = DiskSpace.freeBytes(directory), free < bytes + slackBytes else { return }
        throw lack(bytes, in: directory, option: option, of: subject)
    }

    /// Whether a disk is full.
    static func isExhausted(in directory: String) -> Bool {
        DiskSpace.freeBytes(directory).map { $0 < exhaustedBytes } ?? false
    }

    /// Creates the error for a disk without enough room.
    static func lack(
        _ bytes: Int64, in directory: String, option: String, of subject: String
    ) -> Faults {
        let free = DiskSpace.freeBytes(directory).map { ByteCount.text($0) } ?? "too little"
        return Faults(
            option,
            "the disk of \(directory) is full: \(free) free, and the \(subject) takes "
                + "\(ByteCount.text(bytes + slackBytes)); free space or use another disk"
        )
    }
}
