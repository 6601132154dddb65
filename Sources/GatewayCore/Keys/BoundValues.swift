import WidgetModel

/// The values of a dependency key: one position for each binding of its rule, in the rule's order.
///
/// Kept as one run of bytes, so that a key costs one allocation and comparing is one `memcmp`.
/// The live index compares these real values; only the version window makes do with ``hash``.
package struct BoundValues: Sendable, Hashable {
    /// What stands at one position.
    package enum Position: Sendable, Hashable {
        /// The change lacks the attribute: it agrees with every value (a broad key).
        case missing
        /// The widget leaves the parameter unset: it agrees with every value, or with its default
        /// where it has one.
        case unset
        /// One value (an exact key, when every position has one).
        case value(String)
        /// The widget's list is empty: it agrees with a change that lacks the attribute only.
        case nothing

        /// Values compare as the bytes of their text, not as what people take for the same text.
        package static func == (left: Self, right: Self) -> Bool {
            switch (left, right) {
            case (.missing, .missing), (.unset, .unset), (.nothing, .nothing): true
            case (.value(let left), .value(let right)): left.hasSameBytes(as: right)
            default: false
            }
        }

        /// A function of the bytes.
        package func hash(into hasher: inout Hasher) {
            switch self {
            case .missing: hasher.combine(0)
            case .unset: hasher.combine(1)
            case .value(let text): text.hashBytes(into: &hasher)
            case .nothing: hasher.combine(3)
            }
        }
    }

    /// The keyed hash of rule and positions.
    package let hash: UInt64
    /// The positions, encoded.
    package let bytes: [UInt8]

    /// The key of `rule` with these positions.
    package init(rule: Rule, positions: [Position]) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(positions.count * 24)
        for position in positions { Self.append(position, to: &bytes) }
        self.init(rule: rule, bytes: bytes)
    }

    /// The key of `rule` with positions encoded by ``append(_:to:)``.
    init(rule: Rule, bytes: [UInt8]) {
        self.bytes = bytes
        hash = rule.keyHash(bytes)
    }

    /// Appends the encoding of one position; no encoding is the beginning of another.
    static func append(_ position: Position, to bytes: inout [UInt8]) {
        switch position {
        case .missing: bytes.append(0)
        case .unset: bytes.append(1)
        case .value(let text):
            let utf8 = text.utf8
            let count = UInt32(clamping: utf8.count)
            bytes.append(2)
            bytes.append(UInt8(truncatingIfNeeded: count))
            bytes.append(UInt8(truncatingIfNeeded: count >> 8))
            bytes.append(UInt8(truncatingIfNeeded: count >> 16))
            bytes.append(contentsOf: utf8)
        case .nothing: bytes.append(3)
        }
    }

    /// The positions, decoded.
    package var positions: [Position] {
        var positions: [Position] = []
        var index = 0
        while index < bytes.count {
            switch bytes[index] {
            case 0: positions.append(.missing)
            case 1: positions.append(.unset)
            case 3: positions.append(.nothing)
            default:
                let count =
                    Int(bytes[index + 1]) | Int(bytes[index + 2]) << 8 | Int(bytes[index + 3]) << 16
                let start = index + 4
                positions.append(
                    .value(String(decoding: bytes[start..<start + count], as: UTF8.self)))
                index = start + count - 1
            }
            index += 1
        }
        return positions
    }

    /// The hash is a function of the bytes and the rule.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(hash)
    }

    /// Compares the real values.
    package static func == (left: Self, right: Self) -> Bool {
        left.hash == right.hash && left.bytes == right.bytes
    }

    /// Whether a widget with these values is hit by a change whose positions are `change`, some
    /// of which are ``Position/missing``.
    func agrees(withBroad change: BoundValues) -> Bool {
        zip(positions, change.positions).allSatisfy { own, other in
            other == .missing || own == other
        }
    }
}

extension BoundValues {
    /// Whether some position is missing: the key of a change that lacks an attribute.
    var isBroad: Bool {
        // A position's encoding starts with its tag; values are skipped by their length.
        var index = 0
        while index < bytes.count {
            switch bytes[index] {
            case 0: return true
            case 1, 3: index += 1
            default:
                let count =
                    Int(bytes[index + 1]) | Int(bytes[index + 2]) << 8 | Int(bytes[index + 3]) << 16
                index += 4 + count
            }
        }
        return false
    }
}
