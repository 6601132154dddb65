import Foundation
import WidgetModel

/// The data that one client keeps across restarts, and that a system needs to show its widgets: a
/// directory of small files. Each is replaced as a whole, and is on disk when the write returns.
///
/// | file | content |
/// |---|---|
/// | `state.json` | the registration and the cursors |
/// | `budget.json` | the spent reloads of each placed widget |
/// | `timelines/*.json` | one ``TimelineArchive`` for each placed widget and shown presentation |
/// | `placeholders/*.json` | the content shown while there is no timeline |
/// | `push.json`, `controls.json` | the push token and the placed controls, from their handlers |
/// | `drawings.json` | the placed controls as they were drawn |
/// | `activities.json` | the Live Activities and their content |
/// | `launched` | exists once the app was launched; see ``recordLaunch()`` |
/// | `extension.sock`, `app.sock` | the sockets of the running extension and of the running app |
/// | `extension.lock`, `app.lock` | held by these processes |
///
/// Only the timelines, `drawings.json` and `activities.json` hold content that people see. Where
/// files are protected while a device is locked, the timelines and `drawings.json` may be
/// protected; `activities.json`, `state.json` and `budget.json` must not be, because a push may
/// arrive at any time and is processed with them.
///
/// Any process that shows widgets can read it without the app's code. Only one running client
/// writes it: each extension of a client that has several has an archive of its own.
public struct ClientArchive: Sendable {
    /// The largest state that is read, bytes; far above the size of the largest valid registration.
    static let stateBytesMax = 16 * 1024 * 1024

    /// The reason why something was not archived.
    public struct Failure: Error, Sendable, Equatable, CustomStringConvertible {
        /// The failed operation, with the system's reason.
        public let description: String
        let isInUse: Bool

        init(_ what: String, _ code: Int32) {
            self.init("the archive could not be \(what): \(String(cString: strerror(code)))")
        }

        init(_ description: String, isInUse: Bool = false) {
            self.description = description
            self.isInUse = isInUse
        }
    }

    /// The path of the archive.
    public let directory: String

    /// Creates an archive; its directory is created at the first save. Only its owner can read the
    /// files, because a registration may contain push tokens.
    ///
    /// - Parameter directory: A directory used for nothing else, whose parent exists. Other processes
    ///   connect only where its path has less than 90 bytes: a socket's path is short.
    public init(directory: String) {
        self.directory = directory
    }

    var statePath: String { directory + "/state.json" }
    var budgetsPath: String { directory + "/budget.json" }

    /// Returns the state saved last for this owner; `nil` when there is none, or none that can be
    /// read.
    package func load(owner: String) -> StateDocument? {
        document(statePath).flatMap { StateDocument($0) }.flatMap { $0.owner == owner ? $0 : nil }
    }

    /// Replaces the state. Throws ``Failure``; the state saved before then remains.
    package func save(_ document: StateDocument) throws(Failure) {
        try replace(statePath, with: document.json.serialized)
    }

    /// Records that the app was launched: its widgets are in the gallery only after that (article
    /// "Creating a widget extension", "Add configuration details"). ``AppListener`` calls it.
    ///
    /// - Throws: ``Failure``.
    public func recordLaunch() throws(Failure) { try replace(launchPath, with: []) }

    /// Whether the app was launched at least once.
    public var isLaunched: Bool { access(launchPath, F_OK) == 0 }

    private var launchPath: String { directory + "/launched" }
    var extensionSocket: String { directory + "/extension.sock" }
    var appSocket: String { directory + "/app.sock" }

    /// Reserves the archive for the one process of a role, `extension` or `app`. Throws
    /// ``Failure``, also when it is in use.
    func lock(_ role: String) throws(Failure) -> ArchiveLock {
        try Self.create(directory)
        return try ArchiveLock(directory + "/\(role).lock")
    }

    private static func create(_ directory: String) throws(Failure) {
        guard mkdir(directory, 0o700) == 0 || errno == EEXIST else {
            throw Failure("created", errno)
        }
    }

    func document(_ path: String) -> JSONValue? {
        AtomicFile.read(path, bytesMax: Self.stateBytesMax).flatMap { try? JSONValue(parsing: $0) }
    }

    func replace(_ path: String, with bytes: [UInt8]) throws(Failure) {
        try Self.create(directory)
        try Self.create((path as NSString).deletingLastPathComponent)
        do throws(AtomicFile.Failure) {
            try AtomicFile.replace(path, with: bytes)
        } catch {
            throw Failure(error.what, error.code)
        }
    }
}

/// A lock on an open file: the kernel releases it when the process ends, however it ends.
final class ArchiveLock: Sendable {
    let descriptor: Int32

    fileprivate init(_ path: String) throws(ClientArchive.Failure) {
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw ClientArchive.Failure("locked", errno) }
        guard flock(file, LOCK_EX | LOCK_NB) == 0 else {
            let code = errno
            _ = close(file)
            guard code == EWOULDBLOCK else { throw ClientArchive.Failure("locked", code) }
            throw ClientArchive.Failure("another process uses the archive", isInUse: true)
        }
        descriptor = file
    }

    deinit {
        // A child process that is just being started holds a copy of the descriptor for a moment.
        _ = flock(descriptor, LOCK_UN)
        _ = close(descriptor)
    }
}
