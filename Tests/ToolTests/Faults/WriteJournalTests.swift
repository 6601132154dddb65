import GatewayTestSupport
import Testing
import WidgetModel

@testable import gateway_faults

/// The contents of a file after a power loss, computed from the output of strace.
@Suite struct WriteJournalTests {
    /// Returns the different contents that 100 power losses leave.
    private func outcomes(_ lines: [String], of content: [UInt8] = []) -> Set<[UInt8]> {
        var outcomes: Set<[UInt8]> = []
        for seed in 0..<100 {
            var journal = WriteJournal(path: "/data/store", content: content)
            for line in lines {
                // Paths are in hexadecimal, as strace writes them.
                let line = line.replacing("/data/store", with: WriteJournal.hex("/data/store"))
                journal.read(ArraySlice(line.utf8))
            }
            var generator = SplitMix64(seed: UInt64(seed))
            outcomes.insert(journal.contentAfterLoss(using: &generator))
        }
        return outcomes
    }

    @Test func whatWasSyncedIsKept() {
        let lines = [
            #"7 pwrite64(3</data/store>, "\x61\x62", 2, 0) = 2"#,
            #"7 pwrite64(4</data/other>, "\x63", 1, 0) = 1"#, "7 fdatasync(3</data/store>) = 0",
        ]
        #expect(outcomes(lines) == [[0x61, 0x62]])
    }

    @Test func whatWasNotSyncedIsKeptOrGone() {
        let lines = [
            #"7 pwrite64(3</data/store>, "\x61", 1, 0) = 1"#, "7 fdatasync(4</data/other>) = 0",
        ]
        #expect(outcomes(lines) == [[], [0x61]])
    }

    @Test func aWriteIsTornBetweenSectors() {
        let bytes = String(repeating: #"\x61"#, count: 1024)
        let lines = [#"7 pwrite64(3</data/store>, "\#(bytes)", 1024, 0) = 1024"#]
        let zeros = [UInt8](repeating: 0, count: 1024)
        let all = outcomes(lines, of: zeros)
        let (old, new) = (zeros.prefix(512), [UInt8](repeating: 0x61, count: 512))
        #expect(all == [zeros, new + new, old + new, new + old])
    }

    @Test func aSyncCoversWhatWasWrittenBeforeItBegan() {
        let lines = [
            #"7 pwrite64(3</data/store>, "\x61", 1, 0) = 1"#,
            "7 fdatasync(3</data/store> <unfinished ...>",
            #"8 pwrite64(3</data/store>, "\x62", 1, 1) = 1"#, "7 <... fdatasync resumed>) = 0",
        ]
        #expect(outcomes(lines) == [[0x61], [0x61, 0x62]])
    }

    @Test func aTruncationIsKeptOrNot() {
        let lines = ["7 ftruncate(3</data/store>, 1) = 0"]
        #expect(outcomes(lines, of: [1, 2]) == [[1], [1, 2]])
    }
}
