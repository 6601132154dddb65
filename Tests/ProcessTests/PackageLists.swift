import GatewayTestSupport

/// The package lists that `apt-get update` left on this machine: the distribution's own and its
/// security updates.
struct PackageLists {
    /// The description of a package in a list.
    struct Entry: Sendable {
        let version: String
        let section: String
    }

    /// The distribution's packages by name.
    let main: [String: Entry]
    /// The security updates by name.
    let security: [String: Entry]

    /// Reads the lists, compressed or not.
    ///
    /// - Throws: ``TestFailure``, saying what to do when there are none.
    init() throws {
        let hint = "; run `apt-get update` first"
        let (exit, output) = try GatewayProcess.run(
            ["indextargets", "--format", "$(RELEASE) $(FILENAME)", "Identifier: Packages"],
            program: "/usr/bin/apt-get")
        guard exit == .status(0) else { throw TestFailure("apt-get: \(output)" + hint) }
        var (main, security): ([String: Entry], [String: Entry]) = ([:], [:])
        for line in output.split(separator: "\n") {
            let words = line.split(separator: " ", maxSplits: 1).map(String.init)
            guard words.count == 2 else { continue }
            if words[0].hasSuffix("-security") || words[0].hasSuffix("/updates") {
                security.merge(try Self.read(words[1])) { $1 }
            } else if !words[0].contains("-") {
                main.merge(try Self.read(words[1])) { $1 }
            }
        }
        guard main.count > 1_000, !security.isEmpty else {
            throw TestFailure(
                "\(main.count) packages and \(security.count) security updates" + hint)
        }
        (self.main, self.security) = (main, security)
    }

    private static func read(_ file: String) throws -> [String: Entry] {
        let fields =
            #"/usr/lib/apt/apt-helper cat-file "$1" | grep -E '^(Package|Version|Section): '"#
        let (_, output) = try GatewayProcess.run(
            ["-c", fields, "sh", file], program: "/bin/sh")
        var packages: [String: Entry] = [:]
        var (name, version, section) = ("", "", "")
        func finish() {
            if !name.isEmpty { packages[name] = Entry(version: version, section: section) }
        }
        for line in output.utf8.split(separator: UInt8(ascii: "\n")) {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { continue }
            let value = String(Substring(line[colon...].dropFirst(2)))
            switch line.first {
            case UInt8(ascii: "P"):
                finish()
                (name, version, section) = (value, "", "")
            case UInt8(ascii: "V"): version = value
            default: section = value
            }
        }
        finish()
        return packages
    }
}
