/// The counts of callgrind up to one dump.
///
/// A call is counted when the first instruction of the called function runs: callgrind's own number
/// of calls includes those made while counting was off.
struct CallgrindProfile: Equatable {
    /// Instructions by the path of the program or library they belong to; `???` for no file's.
    private(set) var instructions: [String: Int] = [:]
    private(set) var calls: [String: Int] = [:]

    /// The instruction of a function that stands first, and how often it ran.
    private struct Entry {
        var address: UInt64
        var count = 0

        mutating func add(_ count: Int, at address: UInt64) {
            if address < self.address { self = Entry(address: address) }
            if address == self.address { self.count += count }
        }
    }

    /// Reads a profile of one event by instructions, as ``options`` make one. Throws
    /// ``CallgrindFault`` when it is no such profile, or incomplete.
    init(parsing text: String) throws(CallgrindFault) {
        let lines = text.split(separator: "\n")
        guard lines.first == "# callgrind format" else { throw .notCallgrind }
        var total: Int?
        var (object, function) = ("???", "")
        var entries: [String: [String: Entry]] = [:]
        // The cost after a call is that of the function called, which has lines of its own.
        var isOfCall = false
        for line in lines.dropFirst() {
            if let counted = line.after("0x") {
                if !isOfCall {
                    let fields = counted.split(separator: " ")
                    guard fields.count == 2, let address = UInt64(fields[0], radix: 16),
                        let count = Int(fields[1])
                    else { throw .unreadable(line: String(line)) }
                    instructions[object, default: 0] += count
                    entries[object, default: [:]][
                        function, default: Entry(address: address)
                    ].add(count, at: address)
                }
                isOfCall = false
            } else if let path = line.after("ob=") {
                object = String(path)
            } else if let name = line.after("fn=") {
                function = Self.name(name)
            } else if line.hasPrefix("calls=") {
                isOfCall = true
            } else if let count = line.after("totals: ") {
                total = Int(count)
            } else if !Self.ignored.contains(where: { line.hasPrefix($0) }) {
                throw .unreadable(line: String(line))
            }
        }
        guard let total else { throw .cut }
        let sum = instructions.values.reduce(0, +)
        guard total == sum else { throw .sumDiffers(total: total, sum: sum) }
        for (function, entry) in entries.values.joined() {
            calls[function, default: 0] += entry.count
        }
    }

    /// Options that make callgrind's profiles readable.
    static let options = [
        "--dump-instr=yes", "--dump-line=no", "--compress-strings=no", "--compress-pos=no",
    ]

    /// Beginnings of lines that say nothing of what is counted here.
    private static let ignored = [
        "version:", "creator:", "pid:", "cmd:", "part:", "desc:", "positions: instr", "events: Ir",
        "summary:", "fl=", "fi=", "fe=", "cob=", "cfi=", "cfl=", "cfn=",
    ]

    /// The name of a function without callgrind's mark of how deep it has called itself.
    private static func name(_ text: Substring) -> String {
        guard let mark = text.lastIndex(of: "'"), text[mark...].dropFirst().allSatisfy(\.isNumber)
        else { return String(text) }
        return String(text[..<mark])
    }
}

/// Why a text is no profile that can be read.
enum CallgrindFault: Error, Equatable {
    /// It does not begin as callgrind's files do.
    case notCallgrind
    /// This line has a form that is not known.
    case unreadable(line: String)
    /// It has no end.
    case cut
    /// Its counts do not sum up to its total.
    case sumDiffers(total: Int, sum: Int)
}

extension Substring {
    /// Returns the text after `prefix`; `nil` where it does not begin with that.
    fileprivate func after(_ prefix: String) -> Substring? {
        hasPrefix(prefix) ? dropFirst(prefix.count) : nil
    }
}
