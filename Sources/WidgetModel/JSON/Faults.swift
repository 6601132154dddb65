/// One thing wrong in a document a person or program sent us.
public struct Fault: Sendable, Hashable, CustomStringConvertible {
    /// Where: a path such as `widgets[0].dependsOn[1].match.id`; empty for the whole document.
    public let place: String
    /// What is wrong, and what would be right.
    public let message: String

    /// A fault at a place.
    public init(_ place: String, _ message: String) {
        self.place = place
        self.message = message
    }

    /// "place: message".
    public var description: String { place.isEmpty ? message : "\(place): \(message)" }

    /// The fault as a member of a problem's `faults`.
    public var json: JSONValue { ["place": .string(place), "message": .string(message)] }
}

/// Everything found wrong in one document; thrown when at least one fault was found.
public struct Faults: Error, Sendable, Equatable, CustomStringConvertible {
    /// More are counted but not kept: a peer must not choose the size of our answer.
    public static let keptMax = 100

    /// The faults, at most ``keptMax`` of them, in the order found.
    public private(set) var list: [Fault] = []
    /// How many were found in all.
    public private(set) var count = 0
    /// Searches for the names that were probably meant.
    private var nearest = NearestName()

    /// No faults yet.
    public init() {}

    /// One fault.
    public init(_ place: String, _ message: String) {
        add(place, message)
    }

    /// Whether nothing is wrong.
    public var isEmpty: Bool { count == 0 }

    /// Adds a fault. Place and message are made only for a fault that is kept.
    public mutating func add(
        _ place: @autoclosure () -> String, _ message: @autoclosure () -> String
    ) {
        count += 1
        if list.count < Self.keptMax { list.append(Fault(place(), message())) }
    }

    /// Adds a fault about an unknown name, with the known name nearest to it. The search happens only
    /// for a fault that is kept, and within a budget for all faults of the document.
    ///
    /// - Parameters:
    ///   - name: The unknown name.
    ///   - candidates: The known names.
    ///   - sign: Stands before the known name where it is written, such as `$`.
    public mutating func add(
        _ place: @autoclosure () -> String, _ message: @autoclosure () -> String,
        hint name: String, among candidates: @autoclosure () -> some Sequence<String>,
        sign: String = ""
    ) {
        count += 1
        guard list.count < Self.keptMax else { return }
        let known = nearest.search(name, among: candidates())
        let hint = known.map { "; did you mean `\(sign)\($0)`?" } ?? ""
        list.append(Fault(place(), message() + hint))
    }

    /// Faults are equal when those kept and their number are.
    public static func == (left: Self, right: Self) -> Bool {
        left.list == right.list && left.count == right.count
    }

    /// Takes over another document's faults, with `prefix` before their places.
    public mutating func add(_ other: Faults, under prefix: String) {
        for fault in other.list {
            let isJoined = prefix.isEmpty || fault.place.isEmpty || fault.place.hasPrefix("[")
            let separator = isJoined ? "" : "."
            add(prefix + separator + fault.place, fault.message)
        }
        count += other.count - other.list.count
    }

    /// One fault a line.
    public var description: String {
        list.map(\.description).joined(separator: "\n")
    }
}
