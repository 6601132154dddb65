import Foundation

/// The files that a configuration names: regular files of bounded size.
///
/// A path may lead elsewhere by mistake: a device without end, or a pipe without a writer, must not hold
/// the thread that reads it.
enum ConfigurationFile {
    /// The maximum size of a file, in bytes; certificates and keys are far smaller.
    static let bytesMax = 16 << 20

    /// Returns the content of a file; `nil` if it is not a readable regular file of at most
    /// ``bytesMax``.
    static func contents(of path: String) -> Data? {
        // Without O_NONBLOCK, opening a pipe waits for its writer.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            status.st_size <= bytesMax
        else { return nil }
        // The file may have grown since.
        do {
            let data = try file.read(upToCount: bytesMax + 1) ?? Data()
            return data.count <= bytesMax ? data : nil
        } catch {
            return nil
        }
    }
}
