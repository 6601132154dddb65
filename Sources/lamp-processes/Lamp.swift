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

    /// Notes that a timeline of this kind is being built: a line of the file `builds`.
    func noteBuild(of kind: String) throws {
        let path = directory + "/builds"
        if !FileManager.default.fileExists(atPath: path) {
            try Data().write(to: URL(filePath: path))
        }
        let file = try FileHandle(forWritingTo: URL(filePath: path))
        try file.seekToEnd()
        try file.write(contentsOf: Data((kind + "\n").utf8))
    }
}
