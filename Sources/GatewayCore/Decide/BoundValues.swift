import WidgetModel

/// The values of a dependency key: one position for each binding of its rule, in the rule's order.
///
/// Stored as one array of bytes, so that a key costs one allocation and a comparison is one
/// `memcmp`. The live index compares these real values; only the version window relies on ``hash``.
package struct BoundValues: Sendable, Hashable {
    package enum Position: Sendable, Hashable {
        /// The change lacks the attribute; matches every value (a broad key).
        case missing
        /// The widget leaves the parameter unset; matches every value, or the default if there is
        /// one.
        case unset
        /// A single value (an exact key, if every position has one).
        case value(String)
        /// The widget's list is empty; matches only a change that lacks the attribute.
        case nothing

        /// Compares the bytes of the texts, not their Unicode equivalence.
        package static func == (left: Self, right: Self) -> Bool {
            switch (left, right) {
            case (.missing, .missing), (.unset, .unset), (.nothing, .nothing): true
            case (.value(let left), .value(let right)): left.hasSameBytes(as: right)
            default: false
            }
        }

        /// Hashes the bytes of the text.
        package func hash(into hasher: inout Hasher) {
            switch self {
            case .missing: hasher.combine(0)
            case .unset: hasher.combine(1)
            case .value(let text): text.hashBytes(into: &hasher)
            case .nothing: hasher.combine(3)
            }
        }
    }

    /// The keyed hash of the rule and the positions.
    package let hash: UInt64
    /// The encoded positions.
    package let bytes: [UInt8]

    /// Creates the key of `rule` with these positions.
    package init(rule: Rule, positions: [Position]) {
        var bytes: [UInt8] = []
        for position in positions { bytes.append(encoded: position) }
        self.init(rule: rule, bytes: bytes)
    }

    /// Creates the key of `rule` with positions encoded by ``encoded(_:after:)``.
    init(rule: Rule, bytes: [UInt8]) {
        self.init(bytes: bytes, hash: rule.keyHash(bytes))
    }

    init(bytes: [UInt8], hash: UInt64) {
        self.bytes = bytes
        self.hash = hash
    }

    /// Returns the encoding of one position appended to that of others.
    static func encoded(_ position: Position, after head: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        if case .value(let text) = position {
            bytes.reserveCapacity(head.count + 4 + text.utf8.count)
        } else {
            bytes.reserveCapacity(head.count + 1)
        }
        if !head.isEmpty { bytes.append(contentsOf: head) }
        bytes.append(encoded: position)
        return bytes
    }

    package var positions: [Position] {
        var positions: [Position] = []
        bytes.withUnsafeBytes { $0.visitPositions { positions.append($1) } }
        return positions
    }

    /// Hashes the stored hash, which depends on the bytes and the rule.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(hash)
    }

    /// Compares the real values.
    package static func == (left: Self, right: Self) -> Bool {
        left.hash == right.hash && left.bytes == right.bytes
    }

    /// Returns whether a change with the positions `change`, with at least one
    /// ``Position/missing``, affects a widget with these values.
    func agrees(withBroad change: BoundValues) -> Bool {
        zip(positions, change.positions).allSatisfy { own, other in
            other == .missing || own == other
        }
    }
}

extension BoundValues {
    /// Whether some position is missing, as in the key of a change that lacks an attribute.
    package var isBroad: Bool { bytes.hasMissing }

    /// Returns the broad key of a change that lacks these attributes but otherwise matches.
    func lacking(_ missing: [Bool], _ rule: Rule) -> BoundValues {
        var result: [UInt8] = []
        var index = 0
        for isMissing in missing where index < bytes.count {
            let end = bytes.endOfPosition(at: index)
            if isMissing {
                result.append(0)
            } else {
                result.append(contentsOf: bytes[index..<end])
            }
            index = end
        }
        return BoundValues(rule: rule, bytes: result)
    }

    /// Calls `body` with the encoding of each broad key that matches this key.
    func visitLacking(_ body: ([UInt8]) -> Void) {
        var count = 0
        var index = 0
        while index < bytes.count {
            count += 1
            index = bytes.endOfPosition(at: index)
        }
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        for lacked in 1..<max(1, 1 << count) {
            result.removeAll(keepingCapacity: true)
            var index = 0
            for place in 0..<count {
                let end = bytes.endOfPosition(at: index)
                if lacked >> place & 1 == 1 {
                    result.append(0)
                } else {
                    result.append(contentsOf: bytes[index..<end])
                }
                index = end
            }
            body(result)
        }
    }
}
