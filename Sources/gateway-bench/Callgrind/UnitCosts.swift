/// The cost of one more of something.
struct UnitCosts: Equatable {
    /// Instructions, without the kernel's.
    let instructions: Double
    /// Of these, the product's own and the Swift runtime's.
    let ownInstructions: Double
    /// Times that memory was asked for, or asked to be more.
    let allocations: Double
    /// Of these, those by Swift: the product's own.
    let ownAllocations: Double
    /// Writes to sockets.
    let sends: Double

    /// Compares two profiles of the same work, with `units` more in the second. Throws
    /// ``BenchFailure`` if a profile lacks a function that every profile has: it may be renamed,
    /// and its regressions would not be seen.
    init(_ fewer: CallgrindProfile, _ more: CallgrindProfile, units: Int) throws {
        guard units > 0 else { throw BenchFailure("no events were counted") }
        func slope(_ what: String, _ count: (CallgrindProfile) -> Int) throws -> Double {
            let (before, after) = (count(fewer), count(more))
            guard before > 0, after > 0 else {
                throw BenchFailure(
                    "callgrind saw no \(what): was the counted function renamed?")
            }
            return Double(after - before) / Double(units)
        }
        instructions = try slope("instructions") { $0.instructions.values.reduce(0, +) }
        ownInstructions = try slope("instructions of ours") {
            $0.instructions.reduce(0) { Self.isOwn($1.key) ? $0 + $1.value : $0 }
        }
        allocations = try slope("allocations") { $0.calls(of: Self.allocators) }
        ownAllocations = try slope("allocations of ours") { $0.calls(of: ["swift_slowAlloc"]) }
        sends = Double(more.calls(of: ["send"]) - fewer.calls(of: ["send"])) / Double(units)
        guard ownInstructions > 0 else {
            throw BenchFailure("\(units) more units cost nothing: wrong function counted")
        }
    }

    /// Every other allocator, Swift's and OpenSSL's too, calls one of these.
    private static let allocators = [
        "malloc", "calloc", "realloc", "aligned_alloc", "memalign", "posix_memalign",
    ]
    /// `???` is code that belongs to no file, such as the stubs that libraries call each other by.
    private static let others = ["libcrypto.", "libssl.", "libc.", "???"]

    /// Whether a program or library is the product or the Swift runtime, by its path.
    private static func isOwn(_ path: String) -> Bool {
        let name = path.split(separator: "/").last ?? ""
        return !others.contains { name.hasPrefix($0) }
    }
}

extension CallgrindProfile {
    fileprivate func calls(of functions: [String]) -> Int {
        functions.reduce(0) { $0 + (calls[$1] ?? 0) }
    }
}
