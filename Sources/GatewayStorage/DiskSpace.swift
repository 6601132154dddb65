import Foundation

/// The free space of file systems.
package enum DiskSpace {
    /// Returns the free space of a directory's file system, bytes; `nil` if it is unknown.
    package static func freeBytes(_ directory: String) -> Int64? {
        var status = statvfs()
        guard statvfs(directory, &status) == 0 else { return nil }
        // Many file systems reserve a share for root.
        let blocks = geteuid() == 0 ? status.f_bfree : status.f_bavail
        let (bytes, overflows) = UInt64(blocks).multipliedReportingOverflow(
            by: UInt64(status.f_frsize))
        return overflows ? .max : Int64(clamping: bytes)
    }
}
