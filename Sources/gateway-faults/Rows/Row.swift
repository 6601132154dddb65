import GatewayTestSupport

/// A fault that the campaign tries.
enum Row: String, CaseIterable, Sendable {
    case registration
    case lostTail = "lost-tail"
    case kill
    case killRetention = "kill-retention"
    case powerLoss = "power-loss"
    case fullDisk = "full-disk"
    case readOnly = "read-only"
    case diskErrors = "disk-errors"
    case slowSync = "slow-sync"
    case descriptors
    case memory
    case stopped
    case clock
    case damage
    case secondGateway = "second-gateway"
    case drain
    case soak
    case rudeClients = "rude-clients"

    /// The parts of a row that are not its name.
    private struct Facts {
        let finding: String
        let summary: String
        let smokeSeconds: Double?
        let seeds: Int
        let seconds: Double
        let run: (RowContext) throws -> Void
    }

    private var facts: Facts {
        switch self {
        case .registration:
            Facts(
                finding: "V1", summary: "registrations change while streams open",
                smokeSeconds: 8, seeds: 10, seconds: 20, run: RegistrationRow.run)
        case .lostTail:
            Facts(
                finding: "V3", summary: "an older copy of the data, without `epoch new`",
                smokeSeconds: 4, seeds: 10, seconds: 20, run: LostTailRow.run)
        case .kill:
            Facts(
                finding: "1",
                summary: "kill -9 under posts, registrations, catalogs, key rotation and backups",
                smokeSeconds: 8, seeds: 10, seconds: 20, run: KillRow.run)
        case .killRetention:
            Facts(
                finding: "1b", summary: "kill -9 with a log that keeps 300 entries",
                smokeSeconds: nil, seeds: 10, seconds: 30, run: KillRetentionRow.run)
        case .powerLoss:
            Facts(
                finding: "1c", summary: "power loss: unsynced writes are kept, torn or gone",
                smokeSeconds: nil, seeds: 10, seconds: 20, run: PowerLossRow.run)
        case .fullDisk:
            Facts(
                finding: "2", summary: "the disk is full, and has room again (needs root)",
                smokeSeconds: 6, seeds: 10, seconds: 20, run: FullDiskRow.run)
        case .readOnly:
            Facts(
                finding: "3", summary: "every write is answered EROFS",
                smokeSeconds: 5, seeds: 10, seconds: 20, run: ReadOnlyRow.run)
        case .diskErrors:
            Facts(
                finding: "4a", summary: "writes and syncs fail, some with kill -9 inside",
                smokeSeconds: 6, seeds: 10, seconds: 20, run: DiskErrorsRow.run)
        case .slowSync:
            Facts(
                finding: "4b", summary: "every sync takes up to half a second",
                smokeSeconds: nil, seeds: 10, seconds: 15, run: SlowSyncRow.run)
        case .descriptors:
            Facts(
                finding: "5, V2", summary: "more connections than descriptors",
                smokeSeconds: 8, seeds: 10, seconds: 15, run: DescriptorsRow.run)
        case .memory:
            Facts(
                finding: "6, V4", summary: "60 posts of 7 MB at once",
                smokeSeconds: nil, seeds: 10, seconds: 20, run: MemoryRow.run)
        case .stopped:
            Facts(
                finding: "7a", summary: "SIGSTOP for seconds, then SIGCONT",
                smokeSeconds: 5, seeds: 10, seconds: 20, run: StoppedRow.run)
        case .clock:
            Facts(
                finding: "7b", summary: "the clock jumps, running and between starts",
                smokeSeconds: nil, seeds: 10, seconds: 20, run: ClockRow.run)
        case .damage:
            Facts(
                finding: "8",
                summary: "damaged files of the data directory; the seed chooses which",
                smokeSeconds: 4, seeds: 10, seconds: 20, run: DamageRow.run)
        case .secondGateway:
            Facts(
                finding: "9", summary: "a second gateway and `epoch new` beside the first",
                smokeSeconds: 4, seeds: 10, seconds: 10, run: SecondGatewayRow.run)
        case .drain:
            Facts(
                finding: "10", summary: "SIGTERM under load with 300 streams",
                smokeSeconds: nil, seeds: 1, seconds: 30, run: DrainRow.run)
        case .soak:
            Facts(
                finding: "11", summary: "15 minutes; memory and descriptors do not grow",
                smokeSeconds: nil, seeds: 1, seconds: 900, run: SoakRow.run)
        case .rudeClients:
            Facts(
                finding: "12", summary: "silent, half and nonsensical connections",
                smokeSeconds: 4, seeds: 1, seconds: 60, run: RudeClientsRow.run)
        }
    }

    /// Its place in the table of findings that it comes from.
    var finding: String { facts.finding }
    /// One line for `--list`.
    var summary: String { facts.summary }
    /// The seconds of its faults in the smoke run; `nil` when it is not part of it.
    var smokeSeconds: Double? { facts.smokeSeconds }
    /// The seeds and seconds of the whole campaign.
    var campaign: (seeds: Int, seconds: Double) { (facts.seeds, facts.seconds) }

    /// Runs it on a gateway of its own.
    ///
    /// - Throws: ``RowSkipped`` where the machine cannot give this fault, and what kept the run from
    ///   its end.
    func run(_ context: RowContext) throws { try facts.run(context) }
}

/// The machine cannot give a fault.
struct RowSkipped: Error {
    let reason: String
}

/// The circumstances of one run of a row.
final class RowContext {
    let seed: UInt64
    /// The length of the faults; what comes after it, until all is settled, is extra.
    let seconds: Double
    var generator: SeededGenerator
    /// Results beside the judge's own.
    var figures: [(name: String, value: String)] = []
    /// The campaign, once there is one: its record is what is judged.
    var campaign: Campaign?

    init(seed: UInt64, seconds: Double) {
        self.seed = seed
        self.seconds = seconds
        generator = SeededGenerator(seed: seed)
    }

    /// Starts a campaign that will be judged.
    func campaign(
        on gateway: GatewayProcess, _ load: Campaign.Load = Campaign.Load()
    ) throws -> Campaign {
        let campaign = try Campaign(gateway, load, &generator)
        self.campaign = campaign
        return campaign
    }

    /// A random number of seconds.
    func seconds(_ low: Double, _ high: Double) -> Double {
        low + (high - low) * Double(generator.below(10_001)) / 10_000
    }
}
