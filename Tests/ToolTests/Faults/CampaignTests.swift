import CatalogModel
import GatewayTestSupport
import Testing
import WidgetModel

@testable import gateway_faults

/// The campaign's app as the gateway reads it.
@Suite struct GameTests {
    @Test(arguments: [0, 1])
    func theCatalogIsValid(variant: Int) throws {
        let catalog = try Catalog(
            JSONValue(yaml: Game.catalog(variant: variant)), app: Game.app, limits: Limits())
        #expect(catalog.widgets.count == 4 + variant)
    }

    @Test func aPlacementHoldsWhatItsDocumentSays() throws {
        var generator = SplitMix64(seed: 3)
        for isParty in [false, true] {
            let placement = Game.Placement.random(isParty: isParty, using: &generator)
            #expect(placement.interests.count == placement.characters.count + 2)
            let widgets = try #require(placement.document.objectValue?["widgets"]?.arrayValue)
            #expect(widgets.count == (isParty ? 3 : placement.characters.count + 2))
        }
    }

    @Test func aNotificationNamesWhatItMeans() {
        let notification = ReloadNotification(
            issuer: "", audience: "", issuedAt: 0, expires: 0, id: "", sequence: 7,
            reload: [
                .init(kind: "detail", parameters: [.init(name: "character", value: "panda")]),
                .init(kind: "party"), .init(kind: "status"), .init(kind: "pulse"),
                .init(kind: "extra"),
            ])
        #expect(
            Game.telling(notification, opened: 0).targets == [
                .interest(RecordBuilder.panda), .kind(.party), .kind(.status),
                .interest(Interest(kind: .pulse, subject: .pulse)), .foreign("extra"),
            ])
    }
}

/// `kill -9` at any moment loses nothing that was answered (invariant 1).
@Suite(.serialized) struct KillTests {
    @Test(arguments: [UInt64(11), 22, 33, 44, 55])
    func aKilledGatewayKeepsEveryAnswerItGave(seed: UInt64) throws {
        // A run in which little happens would prove little.
        let context = RowContext(seed: seed, seconds: 12) { kills, verdict in
            kills > 5 && verdict.changes > 100 && verdict.notifications > 100
                && verdict.unansweredPosts > 0 && verdict.registrations > 25
        }
        defer { context.campaign?.stop() }
        // Each kill comes after a few requests, so it often hits the processing of one.
        try context.kill(pauses: 0.02...0.5)
        let campaign = try #require(context.campaign)
        let verdict = Judge.judge(campaign.recorder.record)
        #expect(
            verdict.violations == [],
            "seed \(seed), \(context.figures)\n\(campaign.gateway.standardErrorTail)")
        let kills = try #require(context.figures.first { $0.name == "kills" })
        #expect(Int(kills.value) ?? 0 > 5)
        #expect(verdict.changes > 100 && verdict.notifications > 100)
        #expect(verdict.unansweredPosts > 0 && verdict.registrations > 25)
    }
}

/// The judge's verdicts on a model gateway without faults, and on the same run with one
/// notification removed.
@Suite struct PlantedLossTests {
    @Test(arguments: 1...50)
    func everyPlantedLossIsFound(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        let record = Self.record(&generator)
        #expect(Judge.judge(record).violations == [], "seed \(seed)")
        let planted = try #require(PlantedLoss.plant(in: record, using: &generator))
        #expect(planted.record.entries.count == record.entries.count - 1)
        let kinds = Judge.judge(planted.record).violations.map(\.kind)
        #expect(kinds == [.lost], "seed \(seed): \(planted.text)")
    }

    @Test func whatIsCoveredIsNotPlanted() {
        var run = RecordBuilder()
        run.begin([RecordBuilder.panda])
        run.post([.character("panda")])
        run.tell("anna", .interest(RecordBuilder.panda))
        run.tell("anna", .interest(RecordBuilder.panda))
        run.move()
        var generator = SplitMix64(seed: 1)
        #expect(PlantedLoss.plant(in: run.record, using: &generator) == nil)
    }

    /// Records a run of a gateway that notifies every holder at once, with registrations that
    /// change.
    private static func record(_ generator: inout SplitMix64) -> Record {
        let all = (0..<6).map { Interest(kind: .detail, subject: .character("\($0)")) }
        let clients = ["anna", "ben", "cleo"]
        var run = RecordBuilder()
        var holdings: [String: Set<Interest>] = [:]
        func choice(_ generator: inout SplitMix64) -> Set<Interest> {
            Set(all.shuffled(using: &generator).prefix(1 + generator.below(3)))
        }
        for client in clients {
            holdings[client] = choice(&generator)
            run.begin(holdings[client] ?? [], as: client)
        }
        for step in 0..<80 {
            // No registration at the end, so that there is a notification to remove.
            if generator.happens(10), step < 40 {
                let client = generator.pick(clients)
                holdings[client] = choice(&generator)
                run.register(client, holdings[client] ?? [])
            }
            let interest = generator.pick(all)
            run.post([interest.subject])
            for client in clients {
                if holdings[client]?.contains(interest) == true {
                    run.tell(client, .interest(interest))
                }
                if generator.happens(50) { run.move(client) }
            }
        }
        for client in clients { run.move(client) }
        return run.record
    }
}

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
