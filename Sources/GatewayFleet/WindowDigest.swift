import GatewayCore

/// A hash of the version windows of a node, as of a position that all nodes choose alike: the end of
/// the first batch of a minute, by the time that the log has. Nodes with equal positions and floors
/// must have equal hashes, because windows follow from the log alone.
package struct WindowDigest: Sendable, Equatable {
    /// The last sequence that the windows contain.
    package let position: UInt64
    /// The sequence up to which the node knows nothing. One that began without a snapshot has a
    /// higher one, and other windows.
    package let floor: UInt64
    package let hash: UInt64

    package init(position: UInt64, floor: UInt64, hash: UInt64) {
        self.position = position
        self.floor = floor
        self.hash = hash
    }

    /// Computes the digest of versions, in time linear in the number of keys.
    package init(_ versions: VersionCompactor) {
        self.init(
            position: versions.position, floor: versions.floor, hash: versions.digest)
    }

    /// Reads the members of a node's report as text; `nil` if one is missing or malformed.
    package init?(position: String?, floor: String?, hash: String?) {
        guard let position = position.flatMap({ UInt64($0) }),
            let floor = floor.flatMap({ UInt64($0) }),
            let hash = hash.flatMap({ UInt64($0, radix: 16) })
        else { return nil }
        self.init(position: position, floor: floor, hash: hash)
    }

    /// Returns the pairs of nodes that have different windows where they must be equal, by their
    /// numbers; each node is in one pair at most.
    package static func differing(
        _ digests: [(node: Int64, digest: WindowDigest)]
    ) -> [(one: Int64, other: Int64, position: UInt64)] {
        var first: [Place: (node: Int64, hash: UInt64)] = [:]
        var pairs: [(one: Int64, other: Int64, position: UInt64)] = []
        for (node, digest) in digests {
            let place = Place(position: digest.position, floor: digest.floor)
            if let known = first[place] {
                guard known.hash != digest.hash else { continue }
                pairs.append((known.node, node, digest.position))
            } else {
                first[place] = (node, digest.hash)
            }
        }
        return pairs
    }

    private struct Place: Hashable {
        let position: UInt64
        let floor: UInt64
    }
}

/// The members `windowPosition`, `windowFloor` and `windowHash` of a node's report.
extension WindowDigest: Codable {
    private enum CodingKeys: String, CodingKey {
        case position = "windowPosition"
        case floor = "windowFloor"
        case hash = "windowHash"
    }

    package init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        let text = try members.decode(String.self, forKey: .hash)
        guard let hash = UInt64(text, radix: 16) else {
            throw DecodingError.dataCorruptedError(
                forKey: .hash, in: members, debugDescription: "not a hexadecimal number")
        }
        self.init(
            position: try members.decode(UInt64.self, forKey: .position),
            floor: try members.decode(UInt64.self, forKey: .floor), hash: hash)
    }

    package func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(position, forKey: .position)
        try members.encode(floor, forKey: .floor)
        // A JSON number of 64 bits is not exact everywhere.
        try members.encode(String(hash, radix: 16), forKey: .hash)
    }
}
