import GatewayCore
import GatewayEngine
import GatewayStorage
import WidgetModel

/// Free space of the disk that a copy goes to.
enum FreeSpace {
    /// Free bytes below which a disk counts as full: less than a few small files take.
    private static let exhaustedBytes: Int64 = 64 << 10
    /// The space that files take beyond their bytes.
    private static let slackBytes: Int64 = 256 << 10

    /// Refuses to begin what a disk has no room for.
    ///
    /// - Parameters:
    ///   - bytes: Bytes that are going to be written.
    ///   - option: The option that names the directory.
    ///   - subject: What is going to be written.
    /// - Throws: ``Faults``.
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

    /// A disk that has no room.
    static func lack(
        _ bytes: Int64, in directory: String, option: String, of subject: String
    ) -> Faults {
        let free = DiskSpace.freeBytes(directory).map { ByteCount.text($0) } ?? "too little"
        return Faults(
            option,
            "the disk of \(directory) has no room: \(free) free, and the \(subject) takes "
                + "\(ByteCount.text(bytes + slackBytes)); make room or name a directory on another disk"
        )
    }
}
