import Foundation

/// A lamp that its server switches: a directory of files that each process of the app can reach.
struct Lamp {
    let directory: String

    /// The one that the environment names.
    static var current: Lamp {
        Lamp(directory: ProcessInfo.processInfo.environment["LAMP"] ?? ".")
    }

    private var light: String { directory + "/light" }

    var isLit: Bool { FileManager.default.fileExists(atPath: light) }

    /// - Throws: When the server does not do it.
    func set(isLit: Bool) throws {
        if isLit {
            try Data().write(to: URL(filePath: light))
        } else if self.isLit {
            try FileManager.default.removeItem(atPath: light)
        }
    }

    /// Whether the server lets whoever asks wait.
    var isSlow: Bool { FileManager.default.fileExists(atPath: directory + "/slow") }

    /// Appends the kind of a timeline that is being built as a line of the file `builds`.
    func recordBuild(of kind: String) throws { try note("builds", kind) }

    /// Appends a line to a file.
    ///
    /// Several processes build at once: a write to a file opened for appending goes to its end
    /// whole, whoever wrote there since it was opened (POSIX, `O_APPEND`).
    func note(_ name: String, _ line: String) throws {
        let file = open(directory + "/" + name, O_WRONLY | O_APPEND | O_CREAT, 0o600)
        guard file >= 0 else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
        try FileHandle(fileDescriptor: file, closeOnDealloc: true)
            .write(contentsOf: Data((line + "\n").utf8))
    }
}
