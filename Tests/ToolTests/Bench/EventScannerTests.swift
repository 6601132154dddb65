import Testing

@testable import gateway_bench

/// Streams cut at every byte, and in pieces of every size.
@Suite struct EventScannerTests {
    private static let stream = Array(
        """
        retry: 2000

        id: first
        event: reload
        data: a data: in the middle counts once

        id: second

        : data: in a comment does not count
        dat: is another field
        data:without the space is not what the servers write
        idle: no id
        id: third
        data: b
        data: c


        """.utf8)

    private static func scan(_ pieces: [[UInt8]], keepsID: Bool = true) -> (Int, EventScanner) {
        var scanner = EventScanner()
        scanner.keepsID = keepsID
        let count = pieces.reduce(0) { $0 + scanner.scan($1.span) }
        return (count, scanner)
    }

    @Test func countsDataLinesWhereverTheStreamIsCut() {
        for cut in 0...Self.stream.count {
            let pieces = [Array(Self.stream[..<cut]), Array(Self.stream[cut...])]
            let (count, scanner) = Self.scan(pieces)
            #expect(count == 3, "cut at \(cut)")
            #expect(scanner.id == "third", "cut at \(cut)")
            #expect(scanner.idCount == 3, "cut at \(cut)")
        }
        for size in 1...Self.stream.count {
            let pieces = stride(from: 0, to: Self.stream.count, by: size).map {
                Array(Self.stream[$0..<min($0 + size, Self.stream.count)])
            }
            #expect(Self.scan(pieces).0 == 3, "pieces of \(size)")
            #expect(Self.scan(pieces).1.id == "third", "pieces of \(size)")
        }
    }

    @Test func aLineCountsWithItsEnd() {
        var scanner = EventScanner()
        #expect(scanner.scan(Array("data: half".utf8).span) == 0)
        #expect(scanner.scan(Array(" and half\n".utf8).span) == 1)
    }

    @Test func anIDIsKeptOnlyWhenAskedForAndNeverWithoutBound() {
        let long = Array("id: \(String(repeating: "x", count: 10_000))\n".utf8)
        #expect(Self.scan([long], keepsID: false).1.id == "")
        #expect(Self.scan([long]).1.id.count == EventScanner.idBytesMax)
        #expect(Self.scan([Array("id: one\r\n".utf8)]).1.id == "one")
    }
}
