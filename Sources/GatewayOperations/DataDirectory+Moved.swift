import Foundation
import WidgetModel

/// The mark of a data directory whose log goes on in a cluster.
extension DataDirectory {
    /// The name of the file that marks it.
    private static let movedName = "moved"

    /// Marks the directory durably: no gateway serves from it until the file is removed by hand.
    ///
    /// - Parameter log: The id of the cluster's log.
    /// - Throws: ``Faults``.
    package func markMoved(to log: String) throws {
        let file = path + "/" + Self.movedName
        let text = "The log of this directory goes on in a cluster, as the log \(log).\n"
        do {
            try Data(text.utf8).write(to: URL(fileURLWithPath: file), options: .atomic)
        } catch {
            throw Faults("from", "cannot write the file \(file): \(error.localizedDescription)")
        }
        _ = try DurableFiles.seal(file, named: Self.movedName)
        try DurableFiles.seal(directory: path)
    }

    /// Checks that the directory was not moved to a cluster: a second log with the same sequences
    /// would begin.
    ///
    /// - Throws: ``Faults``.
    func requireNotMoved() throws(Faults) {
        let file = path + "/" + Self.movedName
        guard !Self.exists(file) else {
            throw Faults(
                "data",
                "the log of \(path) was moved to a cluster, or a move was about to end: serve with"
                    + " `cluster.url`, or run `timeline-gateway move` again. Only if the cluster was"
                    + " never used, remove the file \(file) to serve from the directory again")
        }
    }
}
