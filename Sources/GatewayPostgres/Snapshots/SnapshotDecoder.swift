import GatewayCore

/// Decodes a snapshot piece by piece. Malformed pieces are refused, at a cost that their size and the
/// limit of keys bound.
struct SnapshotDecoder: Sendable {
    /// The reason why pieces are not a snapshot.
    enum Fault: Error, Sendable, Equatable {
        /// A piece is cut off, or has a kind or a value that does not exist.
        case malformedPiece
        /// The pieces have more or fewer records than they announce, or another order.
        case wrongCount
    }

    /// The numbers of records that are announced and have not come.
    private struct Expected {
        var tags = 0
        var removals = 0
        var apps = 0
        var kinds = 0
        var rules = 0
        var retired = 0
        /// Of the tables from the current one on.
        var versions: ArraySlice<Int> = []

        var isAppComplete: Bool {
            kinds == 0 && rules == 0 && retired == 0 && versions.allSatisfy { $0 == 0 }
        }
        var isComplete: Bool { tags == 0 && removals == 0 && apps == 0 && isAppComplete }
    }

    /// The maximum number of tables of an app; each is half as large as the one before, or smaller.
    private static let tablesMax: UInt32 = 64

    private let keysMax: Int
    private var snapshot: NodeSnapshot?
    private var expected = Expected()

    /// Creates a decoder.
    ///
    /// - Parameter keysMax: The number of keys that a version window remembers.
    init(keysMax: Int) { self.keysMax = max(16, keysMax) }

    /// Decodes the next piece.
    mutating func append(_ piece: [UInt8]) throws(Fault) {
        var reader = Reader(piece)
        guard let kind = SnapshotPieceKind(rawValue: try reader.number(UInt8.self)) else {
            throw .malformedPiece
        }
        if kind == .start { return try start(&reader) }
        guard var snapshot = snapshot.take() else { throw .wrongCount }
        defer { self.snapshot = snapshot }
        let last = UInt64(clamping: snapshot.position.last)
        switch kind {
        case .start: break
        case .tags:
            while !reader.isAtEnd {
                try Self.count(&expected.tags)
                let sequence = try reader.number(Int64.self)
                guard sequence > snapshot.tags.newest?.last ?? -1,
                    sequence <= snapshot.position.last
                else { throw .malformedPiece }
                snapshot.tags.append(last: sequence, tag: try reader.number(UInt32.self))
            }
        case .removals:
            while !reader.isAtEnd {
                try Self.count(&expected.removals)
                snapshot.removals[try reader.name()] = try reader.sequence(atMost: last)
            }
        case .app:
            guard expected.isAppComplete else { throw .wrongCount }
            try Self.count(&expected.apps)
            snapshot.apps.append(try app(&reader, last: last))
        case .kinds, .rules, .retired, .versions:
            // The window is changed in place: a copy of it would cost its size for each piece.
            guard var app = snapshot.apps.popLast() else { throw .wrongCount }
            defer { snapshot.apps.append(app) }
            while !reader.isAtEnd { try read(kind, &reader, into: &app, last: last) }
        }
    }

    /// Returns the snapshot, after its last piece.
    func finish() throws(Fault) -> NodeSnapshot {
        guard let snapshot, expected.isComplete else { throw .wrongCount }
        return snapshot
    }

    private mutating func start(_ reader: inout Reader) throws(Fault) {
        guard snapshot == nil else { throw .wrongCount }
        let last = try reader.number(Int64.self)
        let chain = try reader.number(UInt128.self)
        let floor = try reader.number(Int64.self)
        expected.tags = Int(try reader.number(UInt32.self))
        expected.removals = Int(try reader.number(UInt32.self))
        expected.apps = Int(try reader.number(UInt32.self))
        guard last >= 0, reader.isAtEnd else { throw .malformedPiece }
        snapshot = NodeSnapshot(position: LogPosition(last: last, chain: chain), floor: floor)
    }

    private mutating func app(
        _ reader: inout Reader, last: UInt64
    ) throws(Fault) -> NodeSnapshot.App {
        let name = try reader.name()
        let sequence = try reader.sequence(atMost: last)
        let birth = try reader.number(UInt64.self)
        let floor = try reader.number(UInt64.self)
        let sealedThrough = try reader.number(UInt64.self)
        expected.kinds = Int(try reader.number(UInt32.self))
        expected.rules = Int(try reader.number(UInt32.self))
        expected.retired = Int(try reader.number(UInt32.self))
        let tables = try reader.number(UInt32.self)
        guard birth <= last, floor <= last, sealedThrough <= last, tables <= Self.tablesMax else {
            throw .malformedPiece
        }
        var counts: [Int] = []
        // Sealed versions are at most `keysMax`, those after them less than a quarter of it.
        var room = UInt64(keysMax + keysMax / 4)
        for _ in 0..<tables {
            let count = try reader.number(UInt64.self)
            guard count <= room else { throw .malformedPiece }
            room -= count
            counts.append(Int(count))
        }
        guard reader.isAtEnd else { throw .malformedPiece }
        expected.versions = counts[...]
        return NodeSnapshot.App(
            name: name,
            history: RuleSetHistory(sequence: sequence, kinds: [:], rules: [], retired: []),
            versions: CompactedVersions(
                birth: birth, floor: floor, sealedThrough: sealedThrough, tableCounts: counts))
    }

    private mutating func read(
        _ kind: SnapshotPieceKind, _ reader: inout Reader, into app: inout NodeSnapshot.App,
        last: UInt64
    ) throws(Fault) {
        switch kind {
        case .kinds:
            try Self.count(&expected.kinds)
            app.history.kinds[try reader.name()] = try reader.sequence(atMost: last)
        case .rules:
            try Self.count(&expected.rules)
            app.history.rules.append(try reader.entry(last: last))
        case .retired:
            try Self.count(&expected.retired)
            app.history.retired.append(try reader.entry(last: last))
        case .versions:
            while expected.versions.first == 0 { expected.versions.removeFirst() }
            guard let table = expected.versions.indices.first else { throw .wrongCount }
            expected.versions[table] -= 1
            let key = try reader.number(UInt64.self)
            app.versions.raise(key, to: try reader.sequence(atMost: last), inTable: table)
        case .start, .tags, .removals, .app: break
        }
    }

    private static func count(_ expected: inout Int) throws(Fault) {
        guard expected > 0 else { throw .wrongCount }
        expected -= 1
    }

    /// Reads the records of a piece.
    private struct Reader {
        private let bytes: [UInt8]
        private var offset = 0

        init(_ bytes: [UInt8]) { self.bytes = bytes }

        var isAtEnd: Bool { offset == bytes.count }

        mutating func number<Number: FixedWidthInteger>(
            _ type: Number.Type
        ) throws(Fault) -> Number {
            let count = MemoryLayout<Number>.size
            guard bytes.count - offset >= count else { throw .malformedPiece }
            defer { offset += count }
            // Sound: the bytes are there, and are copied within the closure that lends them.
            return bytes.withUnsafeBytes {
                Number(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: Number.self))
            }
        }

        /// Reads a sequence, which is at least 1.
        mutating func sequence(atMost last: UInt64) throws(Fault) -> UInt64 {
            let sequence = try number(UInt64.self)
            guard sequence > 0, sequence <= last else { throw .malformedPiece }
            return sequence
        }

        mutating func text() throws(Fault) -> [UInt8] {
            let count = Int(try number(UInt32.self))
            guard bytes.count - offset >= count else { throw .malformedPiece }
            defer { offset += count }
            return Array(bytes[offset..<offset + count])
        }

        mutating func name() throws(Fault) -> String { String(decoding: try text(), as: UTF8.self) }

        mutating func entry(last: UInt64) throws(Fault) -> RuleSetHistory.Entry {
            RuleSetHistory.Entry(identity: try text(), since: try sequence(atMost: last))
        }
    }
}

extension Optional {
    /// Moves the value out, so that it is changed without a copy.
    fileprivate mutating func take() -> Wrapped? {
        defer { self = nil }
        return self
    }
}
