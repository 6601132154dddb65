import Foundation
import WidgetModel

/// The data that one client keeps across restarts, and that a system needs to show its widgets: a
/// directory of small files. Each is replaced as a whole, and is on disk when the write returns.
///
/// | file | content |
/// |---|---|
/// | `state.json` | the registration and the cursors |
/// | `budget.json` | the spent reloads of each placed widget |
/// | `timelines/*.json` | one ``TimelineArchive`` for each placed widget |
/// | `placeholders/*.json` | the content shown while there is no timeline |
///
/// Only the timelines hold content that people see. Where files are protected while a device is
/// locked, the timelines may be protected; `state.json` and `budget.json` must not be, because a
/// push may arrive at any time and is processed with the cursors.
///
/// Any process that shows widgets can read it without the app's code. Only one client may write it.
public struct ClientArchive: Sendable {
    /// The largest state that is read, bytes; far above the size of the largest valid registration.
    static let stateBytesMax = 16 * 1024 * 1024

    /// The reason why something was not archived.
    public struct Failure: Error, Sendable, Equatable, CustomStringConvertible {
        /// The failed operation, with the system's reason.
        public let description: String

        init(_ what: String, _ code: Int32) {
            description = "the archive could not be \(what): \(String(cString: strerror(code)))"
        }

        init(_ description: String) { self.description = description }
    }

    /// The path of the archive.
    public let directory: String

    /// Creates an archive; its directory is created at the first save. Only its owner can read the
    /// files, because a registration may contain push tokens.
    ///
    /// - Parameter directory: A directory used for nothing else, whose parent exists.
    public init(directory: String) {
        self.directory = directory
    }

    var statePath: String { directory + "/state.json" }
    var budgetsPath: String { directory + "/budget.json" }

    /// Returns the state saved last for this owner; `nil` when there is none, or none that can be
    /// read.
    package func load(owner: String) -> ArchiveDocument? {
        document(statePath).flatMap { ArchiveDocument($0, owner: owner) }
    }

    /// Replaces the state.
    ///
    /// - Throws: ``Failure``; the state saved before then remains.
    package func save(_ document: ArchiveDocument) throws(Failure) {
        try replace(statePath, with: document.json.serialized)
    }

    func document(_ path: String) -> JSONValue? {
        AtomicFile.read(path, bytesMax: Self.stateBytesMax).flatMap { try? JSONValue(parsing: $0) }
    }

    func replace(_ path: String, with bytes: [UInt8]) throws(Failure) {
        let parent = (path as NSString).deletingLastPathComponent
        for directory in parent == directory ? [directory] : [directory, parent] {
            guard mkdir(directory, 0o700) == 0 || errno == EEXIST else {
                throw Failure("created", errno)
            }
        }
        do throws(AtomicFile.Failure) {
            try AtomicFile.replace(path, with: bytes)
        } catch {
            throw Failure(error.what, error.code)
        }
    }
}
