import Glibc

/// Standard output and standard error. A reader that went away is no error.
enum Terminal {
    static func print(_ text: String) { write(text + "\n", to: 1) }

    /// Progress, or an error.
    static func tell(_ text: String) { write(text + "\n", to: 2) }

    private static func write(_ text: String, to descriptor: Int32) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }
}
