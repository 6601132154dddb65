import GatewayCore
import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayPostgres

@Suite struct SnapshotCodecTests {
    private static let position = LogPosition(last: 5_000, chain: 0x0102 << 112 | 7)

    private func decoded(_ pieces: [[UInt8]]) throws -> NodeSnapshot {
        var decoder = SnapshotDecoder(keysMax: 1 << 20)
        for piece in pieces { try decoder.append(piece) }
        return try decoder.finish()
    }

    @Test(arguments: 0..<60) func aSnapshotComesBackAsItWas(seed: Int) throws {
        var random = SplitMix64(seed: UInt64(seed))
        let snapshot = NodeSnapshot.random(at: Self.position, using: &random)
        let pieceBytes = random.pick([64, 100, 1_000, 1 << 20])
        let pieces = SnapshotEncoder.pieces(of: snapshot, pieceBytes: pieceBytes)
        // Only a single record may be larger; they have up to 102 bytes.
        #expect(pieces.allSatisfy { $0.count <= max(pieceBytes, 103) })
        #expect(try decoded(pieces).content == snapshot.content)
    }

    @Test(arguments: 0..<20) func bytesThatAreNoSnapshotAreRefused(seed: Int) throws {
        var random = SplitMix64(seed: UInt64(seed))
        let snapshot = NodeSnapshot.random(at: Self.position, keys: 20, using: &random)
        let pieces = SnapshotEncoder.pieces(of: snapshot, pieceBytes: 200)
        for _ in 0..<100 {
            var broken = pieces
            let index = random.below(broken.count)
            switch random.below(5) {
            case 0: broken.remove(at: index)
            case 1: broken.insert(broken[random.below(broken.count)], at: index)
            case 2: broken[index].removeLast(1 + random.below(broken[index].count))
            case 3: broken[index].append(UInt8(random.below(256)))
            default:
                broken[index][random.below(broken[index].count)] ^= UInt8(1 + random.below(255))
            }
            // Whatever else it is, it is no trap; what is missing or doubled is noticed.
            let result = Result { try decoded(broken) }
            if case .success = result { #expect(broken.count == pieces.count) }
        }
        #expect(throws: SnapshotDecoder.Fault.self) { try decoded([]) }
        #expect(throws: SnapshotDecoder.Fault.self) { try decoded([[9]]) }
        #expect(throws: SnapshotDecoder.Fault.self) { try decoded(pieces.reversed()) }
    }

    @Test func moreKeysThanAWindowHasAreRefusedBeforeTheyCostMemory() throws {
        let app = NodeSnapshot.App(
            name: "app", history: .init(sequence: 1, kinds: [:], rules: [], retired: []),
            versions: CompactedVersions(
                tables: [
                    (1...100).map { .init(key: $0, sequence: 5) },
                    (1...100).map { .init(key: $0, sequence: 6) },
                ]))
        let pieces = SnapshotEncoder.pieces(
            of: NodeSnapshot(position: Self.position, floor: 0, apps: [app]), pieceBytes: 1_000)
        var decoder = SnapshotDecoder(keysMax: 159)
        #expect(throws: SnapshotDecoder.Fault.malformedPiece) {
            for piece in pieces { try decoder.append(piece) }
        }
        decoder = SnapshotDecoder(keysMax: 160)
        for piece in pieces { try decoder.append(piece) }
        #expect(try decoder.finish().apps.first?.versions.count == 200)
    }

    @Test func aTagIsFoundByAnySequenceOfItsBatch() {
        var tags = BatchTags(countMax: 3)
        #expect(tags.tag(of: 1) == nil)
        for (last, chain) in [(4, 1), (5, 2), (9, 3), (12, 4)] as [(Int64, UInt128)] {
            tags.append(LogPosition(last: last, chain: chain << 96 | 77))
        }
        #expect(tags.count == 3)
        #expect(
            [3, 4, 5, 6, 9, 10, 12, 13].map { tags.tag(of: $0) } == [nil, nil, 2, 3, 3, 4, 4, nil])
        var same = BatchTags(countMax: 5)
        for index in 0..<3 { same.append(last: tags[index].last, tag: tags[index].tag) }
        #expect(same == tags)
    }

    @Test func manyTagsAreKeptInBoundedMemory() {
        var tags = BatchTags(countMax: 50)
        for last in 1...1_000 { tags.append(last: Int64(last), tag: UInt32(last)) }
        #expect(tags.count == 50)
        #expect(tags[0] == (951, 951))
        #expect(tags.tag(of: 950) == nil)
        #expect(tags.tag(of: 1_000) == 1_000)
    }
}
