import Synchronization

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Reserves a data directory for one store at a time.
///
/// The lock belongs to the open file: the kernel releases it when the process ends, however it
/// ends, so that no cleanup is needed after a crash.
package final class DirectoryLock: Sendable {
    package static let fileName = "store.lock"

    /// The open lock file; `nil` after its release.
    private let descriptor: Mutex<Int32?>

    /// Creates the directory if necessary (mode 0700; its parent must exist) and locks it.
    ///
    /// - Throws: `StoreError.alreadyInUse`, or `unavailable` if the directory cannot be used.
    package init(directory: String) throws {
        if mkdir(directory, 0o700) != 0, errno != EEXIST {
            throw StoreError.system(directory, notBeen: "made")
        }
        let path = directory + "/" + Self.fileName
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else {
            throw StoreError.system(path, notBeen: "opened")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let error =
                errno == EWOULDBLOCK
                ? StoreError.alreadyInUse : StoreError.system(directory, notBeen: "locked")
            close(descriptor)
            throw error
        }
        self.descriptor = Mutex(descriptor)
    }

    deinit {
        release()
    }

    /// Releases the lock. Further calls have no effect.
    package func release() {
        descriptor.withLock { descriptor in
            guard let open = descriptor.take() else { return }
            close(open)
        }
    }

    /// Creates the file if necessary and makes it readable only by its owner, before the database
    /// opens it: the companion files of a database inherit its mode.
    ///
    /// Must not be called while the database is open: closing any descriptor of its file would
    /// release the locks of the whole process.
    static func createPrivateFile(path: String) throws {
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else {
            throw StoreError.system(path, notBeen: "opened")
        }
        defer { close(file) }
        guard fchmod(file, 0o600) == 0 else {
            throw StoreError.system(path, notBeen: "protected")
        }
    }
}
