import Foundation
import WidgetModel

/// All that one client keeps across restarts, and all that a system shows of its widgets: a
/// directory of small files, each replaced as a whole and on disk when it is.
///
/// | file | what |
/// |---|---|
/// | `state.json` | the registration and the cursors |
/// | `budget.json` | what each placed widget has spent |
/// | `timelines/*.json` | one ``TimelineArchive`` for each placed widget |
/// | `placeholders/*.json` | what is shown while there is none |
///
/// Only the timelines hold what people see; where files are protected while a device is locked,
/// theirs may be, and `state.json` and `budget.json` must not be: a push may come at any time, and
/// is answered with the cursors.
///
/// Whoever shows widgets reads it without the app's code, from any process. Only one client may
/// write it.
public struct ClientArchive: Sendable {
    /// Largest state that is read, bytes: far above that of the most widgets a client may register.
    static let stateBytesMax = 16 * 1024 * 1024

    /// Why something was not archived.
    public struct Failure: Error, Sendable, Equatable, CustomStringConvertible {
        /// What failed, with the system's reason.
        public let description: String

        init(_ what: String, _ code: Int32) {
            description = "the archive could not be \(what): \(String(cString: strerror(code)))"
        }

        init(_ description: String) { self.description = description }
    }

    /// Where it is.
    public let directory: String

    /// An archive, which is made when something is saved. Only its owner can read the files, for a
    /// registration may hold push tokens.
    ///
    /// - Parameter directory: A directory of its own, in one that exists.
    public init(directory: String) {
        self.directory = directory
    }

    var statePath: String { directory + "/state.json" }
    var budgetsPath: String { directory + "/budget.json" }

    /// What was saved last for this owner; `nil` when there is nothing, or nothing that can be
    /// read.
    package func load(owner: String) -> ArchiveDocument? {
        document(statePath).flatMap { ArchiveDocument($0, owner: owner) }
    }

    /// Replaces the state.
    ///
    /// - Throws: ``Failure``; the state is then the one saved before.
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
