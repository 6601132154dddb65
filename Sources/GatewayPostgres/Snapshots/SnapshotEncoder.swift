import GatewayCore

/// Encodes a snapshot piece by piece, so that it takes the memory of one piece.
struct SnapshotEncoder: Sendable {
    private enum Phase {
        case start
        case tags(from: Int)
        case removals([(name: [UInt8], sequence: UInt64)])
        case app(Int)
        case records([Records], of: Int)
        case versions(from: Int, table: Int, of: Int)
        case end
    }

    /// Named sequences of one kind that are not yet encoded.
    private struct Records {
        let kind: SnapshotPieceKind
        var entries: ArraySlice<(name: [UInt8], sequence: UInt64)>
    }

    private static let tagBytes = 12
    private static let versionBytes = 16

    private let snapshot: NodeSnapshot
    private let pieceBytes: Int
    private var phase = Phase.start

    /// Creates an encoder.
    ///
    /// - Parameter pieceBytes: The size of a piece, at least 64.
    init(_ snapshot: NodeSnapshot, pieceBytes: Int = NodeSnapshot.pieceBytes) {
        self.snapshot = snapshot
        self.pieceBytes = max(64, pieceBytes)
    }

    /// Returns the next piece; `nil` after the last one.
    mutating func next() -> [UInt8]? {
        while true {
            switch phase {
            case .start:
                phase = .tags(from: 0)
                return start()
            case .tags(let from):
                if from < snapshot.tags.count { return tags(from: from) }
                phase = .removals(
                    snapshot.removals.sorted { $0.key < $1.key }.map {
                        (Array($0.key.utf8), $0.value)
                    })
            case .removals(let removals):
                var records = Records(kind: .removals, entries: removals[...])
                guard !removals.isEmpty else {
                    phase = .app(0)
                    continue
                }
                let piece = encode(&records)
                phase = .removals(Array(records.entries))
                return piece
            case .app(let index):
                guard index < snapshot.apps.count else {
                    phase = .end
                    return nil
                }
                return app(index)
            case .records(var lists, let index):
                guard var records = lists.first else {
                    phase = .versions(from: 0, table: 0, of: index)
                    continue
                }
                guard !records.entries.isEmpty else {
                    phase = .records(Array(lists.dropFirst()), of: index)
                    continue
                }
                let piece = encode(&records)
                lists[0] = records
                phase = .records(lists, of: index)
                return piece
            case .versions(let from, let table, let index):
                let stored = snapshot.apps[index].versions
                guard table < stored.tableCounts.count else {
                    phase = .app(index + 1)
                    continue
                }
                let (versions, next) = stored.versions(
                    inTable: table, from: from, atMost: (pieceBytes - 1) / Self.versionBytes)
                phase =
                    next.map { .versions(from: $0, table: table, of: index) }
                    ?? .versions(from: 0, table: table + 1, of: index)
                guard !versions.isEmpty else { continue }
                return encode(versions)
            case .end: return nil
            }
        }
    }

    private func start() -> [UInt8] {
        var piece = [SnapshotPieceKind.start.rawValue]
        piece.append(littleEndian: snapshot.position.last)
        piece.append(littleEndian: snapshot.position.chain)
        piece.append(littleEndian: snapshot.floor)
        piece.append(littleEndian: UInt32(clamping: snapshot.tags.count))
        piece.append(littleEndian: UInt32(clamping: snapshot.removals.count))
        piece.append(littleEndian: UInt32(clamping: snapshot.apps.count))
        return piece
    }

    private mutating func tags(from: Int) -> [UInt8] {
        let end = min(snapshot.tags.count, from + (pieceBytes - 1) / Self.tagBytes)
        var piece = [SnapshotPieceKind.tags.rawValue]
        piece.reserveCapacity(1 + (end - from) * Self.tagBytes)
        for index in from..<end {
            let (last, tag) = snapshot.tags[index]
            piece.append(littleEndian: last)
            piece.append(littleEndian: tag)
        }
        phase = .tags(from: end)
        return piece
    }

    private mutating func app(_ index: Int) -> [UInt8] {
        let app = snapshot.apps[index]
        let history = app.history
        func entries(_ rules: [RuleSetHistory.Entry]) -> [(name: [UInt8], sequence: UInt64)] {
            rules.map { ($0.identity, $0.since) }
        }
        let kinds = history.kinds.sorted { $0.key < $1.key }.map {
            (name: Array($0.key.utf8), sequence: $0.value)
        }
        phase = .records(
            [
                Records(kind: .kinds, entries: kinds[...]),
                Records(kind: .rules, entries: entries(history.rules)[...]),
                Records(kind: .retired, entries: entries(history.retired)[...]),
            ], of: index)
        var piece = [SnapshotPieceKind.app.rawValue]
        piece.append(text: Array(app.name.utf8))
        piece.append(littleEndian: history.sequence)
        piece.append(littleEndian: app.versions.birth)
        piece.append(littleEndian: app.versions.floor)
        piece.append(littleEndian: app.versions.sealedThrough)
        piece.append(littleEndian: UInt32(clamping: kinds.count))
        piece.append(littleEndian: UInt32(clamping: history.rules.count))
        piece.append(littleEndian: UInt32(clamping: history.retired.count))
        piece.append(littleEndian: UInt32(clamping: app.versions.tableCounts.count))
        for count in app.versions.tableCounts { piece.append(littleEndian: UInt64(count)) }
        return piece
    }

    /// Encodes as many records as fit, at least one.
    private func encode(_ records: inout Records) -> [UInt8] {
        var piece = [records.kind.rawValue]
        while let (name, sequence) = records.entries.first,
            piece.count == 1 || piece.count + 12 + name.count <= pieceBytes
        {
            piece.append(text: name)
            piece.append(littleEndian: sequence)
            records.entries.removeFirst()
        }
        return piece
    }

    private func encode(_ versions: [VersionWindow.Version]) -> [UInt8] {
        let count = 1 + versions.count * Self.versionBytes
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            // Sound: each byte of the capacity is written, within the closure that lends it.
            let raw = UnsafeMutableRawBufferPointer(buffer)
            raw[0] = SnapshotPieceKind.versions.rawValue
            var offset = 1
            for version in versions {
                raw.storeBytes(
                    of: version.key.littleEndian, toByteOffset: offset, as: UInt64.self)
                raw.storeBytes(
                    of: version.sequence.littleEndian, toByteOffset: offset + 8, as: UInt64.self)
                offset += Self.versionBytes
            }
            initialized = count
        }
    }
}

extension [UInt8] {
    /// Appends the bytes of a number, the least significant first.
    fileprivate mutating func append(littleEndian number: some FixedWidthInteger) {
        // Sound: the bytes are copied within the closure that lends them.
        Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
    }

    /// Appends bytes after their number.
    fileprivate mutating func append(text: [UInt8]) {
        append(littleEndian: UInt32(clamping: text.count))
        append(contentsOf: text)
    }
}
