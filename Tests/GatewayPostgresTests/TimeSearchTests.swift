import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayPostgres

/// The search for a time in the log, without a server.
@Suite struct TimeSearchTests {
    private static func log(_ sizes: [Int64], at: [Int64], after floor: Int64 = 0) -> [BatchHead] {
        var last = floor
        return zip(sizes, at).map { size, at in
            defer { last += size }
            return BatchHead(
                first: last + 1, position: LogPosition(last: last + size, chain: 0), at: at)
        }
    }

    /// Answers as the server does; returns the end of the search and the number of readings.
    private func search(
        _ log: [BatchHead], before moment: Int64, above floor: Int64
    ) throws -> (last: Int64, readings: Int) {
        let head = log.last?.position.last ?? floor
        var search = TimeSearch(before: moment, above: floor, through: head)
        var readings = 0
        while !search.sequences.isEmpty {
            let asked = search.sequences
            #expect(asked == asked.sorted() && Set(asked).count == asked.count)
            #expect(asked.allSatisfy { $0 > floor && $0 <= head })
            readings += 1
            try #require(readings < 50)
            search.receive(
                log.filter { batch in
                    asked.contains { batch.first <= $0 && $0 <= batch.position.last }
                })
        }
        return (search.last, readings)
    }

    @Test(arguments: 0..<60)
    func `times in order have one answer, and others a place between both`(
        _ seed: UInt64
    ) throws {
        var random = SplitMix64(seed: seed)
        let count = random.below(200)
        let floor = Int64(random.below(1_000))
        let sizes = (0..<count).map { _ in Int64(1 + random.below(seed % 2 == 0 ? 3 : 900)) }
        var times = (0..<count).map { _ in Int64(random.below(300)) }
        let isSorted = seed % 3 != 0
        if isSorted { times.sort() }
        let log = Self.log(sizes, at: times, after: floor)
        for moment in Int64(-1)...301 {
            let (last, readings) = try search(log, before: moment, above: floor)
            #expect(readings <= 8)
            if isSorted {
                #expect(last == log.last { $0.at < moment }?.position.last ?? floor)
            } else {
                let before = log.last { $0.position.last <= last }
                let after = log.first { $0.position.last > last }
                #expect(last == before?.position.last ?? floor)
                #expect(before.map { $0.at < moment } ?? true)
                #expect(after.map { $0.at >= moment } ?? true)
            }
        }
    }

    @Test func `what the log has no more is from before`() throws {
        let log = Self.log([5, 5, 5, 5], at: [1, 2, 3, 4])
        let (last, _) = try search(Array(log.dropFirst(2)), before: 0, above: 0)
        #expect(last == 10)
        #expect(try search(Array(log.dropFirst(2)), before: 4, above: 0).last == 15)
    }

    @Test func `a log of any length is searched in a few readings`() throws {
        var search = TimeSearch(before: 1 << 40, above: 0, through: .max - 1)
        var readings = 0
        while !search.sequences.isEmpty {
            readings += 1
            try #require(readings < 20)
            search.receive(
                search.sequences.map {
                    BatchHead(first: $0, position: LogPosition(last: $0, chain: 0), at: $0)
                })
        }
        #expect(search.last == (1 << 40) - 1)
    }
}
