import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayPostgres

@Suite struct LogRecordTests {
    private static let samples: [LogRecord] = [
        LogRecord(app: "com.mygame", .change(event: nil, payload: [])),
        LogRecord(
            app: "a",
            .change(event: .init(source: "/héros", id: ""), payload: [1, 2])),
        LogRecord(
            app: "a",
            .change(
                event: .init(source: "backend", id: "42"),
                payload: [UInt8](repeating: 7, count: 300))),
        LogRecord(app: "", .catalog(payload: [1, 2])),
        LogRecord(app: "a", .reload(scope: [123])),
        LogRecord(app: "a", .removal),
        LogRecord(
            app: "a",
            .registration(.init(part: 4_095, client: "c", revision: .max, digest: -1))),
        LogRecord(app: "a", .registrationRemoved(part: 0, client: "é", revision: 1)),
        LogRecord(app: "a", .addressesLost(part: 1, client: "c")),
    ]

    @Test func recordsAreReadAsTheyWereWritten() throws {
        #expect(try LogRecord.records(in: Self.samples.flatMap(\.encoded)) == Self.samples)
        #expect(try LogRecord.records(in: []) == [])
        // Stored forms stay as they are.
        let registration = LogRecord(
            app: "a", .registration(.init(part: 300, client: "c", revision: 5, digest: 2)))
        #expect(
            registration.encoded
                == [17, 1, 5, 1, 97, 0xAC, 2, 1, 99, 5, 2, 0, 0, 0, 0, 0, 0, 0])
        let change = LogRecord(
            app: "a", .change(event: .init(source: "b", id: "cd"), payload: [7]))
        #expect(change.encoded == [11, 1, 1, 1, 97, 2, 1, 98, 2, 99, 100, 7])
    }

    @Test func aRecordOfAnotherVersionOrTypeStopsTheReader() {
        let unknown: [(bytes: [UInt8], error: LogRecord.Unreadable)] = [
            ([3, 2, 1, 0], .unknown(version: 2, type: 1)),
            ([3, 0, 4, 0], .unknown(version: 0, type: 4)),
            ([3, 1, 8, 0], .unknown(version: 1, type: 8)),
            // Changes with a part that this version does not have.
            ([4, 1, 1, 0, 1], .unknown(version: 1, type: 1)),
            ([4, 1, 1, 0, 4], .unknown(version: 1, type: 1)),
        ]
        for (bytes, error) in unknown {
            let known = LogRecord(app: "a", .removal).encoded
            #expect(throws: error) { try LogRecord.records(in: known + bytes + known) }
        }
    }

    @Test func aDamagedRecordIsRefused() {
        for sample in Self.samples {
            let bytes = sample.encoded
            for count in 1..<bytes.count {
                #expect(throws: LogRecord.Unreadable.damaged) {
                    try LogRecord.records(in: Array(bytes.prefix(count)))
                }
            }
        }
        let damaged: [[UInt8]] = [
            [5, 1, 4, 1, 97, 0], [0], [2, 1, 4], [UInt8](repeating: 0xFF, count: 12),
            // A longer source of an event than there are bytes, and an event without id.
            [7, 1, 1, 0, 2, 3, 97, 97], [6, 1, 1, 0, 2, 1, 97],
        ]
        for bytes in damaged {
            #expect(throws: LogRecord.Unreadable.damaged) { try LogRecord.records(in: bytes) }
        }
        var random = SplitMix64(seed: 1)
        for _ in 0..<20_000 {
            var bytes = Self.samples[random.below(Self.samples.count)].encoded
            for _ in 0..<3 { bytes[random.below(bytes.count)] = UInt8(random.below(256)) }
            _ = try? LogRecord.records(in: bytes)
        }
    }
}
