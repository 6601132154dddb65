/// One fault in a document that a person or program sent.
public struct Fault: Codable, Sendable, Hashable, CustomStringConvertible {
    /// The path of the fault, such as `widgets[0].dependsOn[1].match.id`; empty for the whole
    /// document.
    public let place: String
    /// A description of the fault and its remedy.
    public let message: String

    /// Creates a fault at a path.
    public init(_ place: String, _ message: String) {
        self.place = place
        self.message = message
    }

    /// The path and the message: "place: message".
    public var description: String { place.isEmpty ? message : "\(place): \(message)" }

    /// The fault as a member of a problem's `faults`.
    public var json: JSONValue { ["place": .string(place), "message": .string(message)] }
}

/// All faults of one document. Thrown only with at least one fault.
public struct Faults: Error, Sendable, Equatable, CustomStringConvertible {
    /// The maximum number of faults that are kept; more are only counted, because a peer must not
    /// choose the size of a response.
    public static let keptMax = 100

    /// The faults, at most ``keptMax`` of them, in the order found.
    public private(set) var list: [Fault] = []
    /// The total number of faults.
    public private(set) var count = 0
    /// Searches for similar names to suggest.
    private var nearest = NearestName()

    /// Creates an empty list.
    public init() {}

    /// Creates a list with one fault.
    public init(_ place: String, _ message: String) {
        add(place, message)
    }

    /// Whether there are no faults.
    public var isEmpty: Bool { count == 0 }

    /// Adds a fault. The path and message are computed only for a fault that is kept.
    public mutating func add(
        _ place: @autoclosure () -> String, _ message: @autoclosure () -> String
    ) {
        count += 1
        if list.count < Self.keptMax { list.append(Fault(place(), message())) }
    }

    /// Adds a fault about an unknown name, suggesting the most similar known name. The search is
    /// done only for a fault that is kept, and within a budget for all faults of the document.
    ///
    /// - Parameters:
    ///   - name: The unknown name.
    ///   - candidates: The known names.
    ///   - sign: A prefix of the known name in the written form, such as `$`.
    ///   - question: The words between the message and the known name.
    public mutating func add(
        _ place: @autoclosure () -> String, _ message: @autoclosure () -> String,
        hint name: String, among candidates: @autoclosure () -> some Sequence<String>,
        sign: String = "", question: String = "; did you mean"
    ) {
        count += 1
        guard list.count < Self.keptMax else { return }
        let known = nearest.search(name, among: candidates())
        let hint = known.map { "\(question) `\(sign)\($0)`?" } ?? ""
        list.append(Fault(place(), message() + hint))
    }

    /// Returns whether the kept faults and the total numbers are equal.
    public static func == (left: Self, right: Self) -> Bool {
        left.list == right.list && left.count == right.count
    }

    /// Adds another document's faults, with `prefix` before their paths.
    public mutating func add(_ other: Faults, under prefix: String) {
        for fault in other.list {
            let isJoined = prefix.isEmpty || fault.place.isEmpty || fault.place.hasPrefix("[")
            let separator = isJoined ? "" : "."
            add(prefix + separator + fault.place, fault.message)
        }
        count += other.count - other.list.count
    }

    /// The faults, one per line.
    public var description: String {
        list.map(\.description).joined(separator: "\n")
    }
}
