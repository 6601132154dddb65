import GatewayPostgres
import HeapModule

/// Nodes that write batches to one log in turns, and nodes that read it: a simulation by events.
///
/// Each writer has one batch under way; the posts that arrive meanwhile are its next one. A batch
/// asks the primary what is known (one round trip), waits for the lock, has it for the measured time,
/// and is answered. A notified reader reads up to the newest batch; a reader with a query under way
/// reads again afterwards.
struct FleetWriting {
    /// A post that waits for its 202.
    private struct Post {
        let at: Double
        let isRegistration: Bool
    }

    private struct Writer {
        var nextPost: Double
        /// The posts without an answer, the oldest first; those of the batch come first.
        var posts: [Post] = []
        /// The number of posts in the current batch.
        var inBatch = 0
        var registrations = 0
        var askedAt = 0.0
        var lastNotice = -Double.infinity
        var isNoticeDue = false
    }

    private struct Reader {
        /// The number of batches that it has, and that its query under way reads up to.
        var position = 0
        var target = 0
        var isReading = false
        var isAwake = false
    }

    private enum Step {
        case begin(writer: Int)
        case ask(writer: Int)
        case commit(writer: Int)
        case notice(writer: Int)
        case answer(reader: Int)
        case read(reader: Int)
    }

    private struct Event: Comparable {
        let time: Double
        /// The order among events at one time.
        let number: Int
        let step: Step

        static func == (one: Event, other: Event) -> Bool { one.number == other.number }
        static func < (one: Event, other: Event) -> Bool {
            (one.time, one.number) < (other.time, other.number)
        }
    }

    /// The results.
    struct Outcome {
        /// The time that was simulated, seconds.
        let seconds: Double
        /// The number of batches.
        var batches = 0
        /// The number of changes and registrations in them.
        var records = 0
        /// The number of registrations in them.
        var registrations = 0
        /// The number of posts that were answered 503.
        var refused = 0
        /// The total time that batches had the lock, seconds.
        var lockHeld = 0.0
        /// The times from a post to its 202, seconds.
        var answers: [Double] = []
        /// The queries of all readers.
        var queries = 0
        /// The records that all readers were sent.
        var sent = 0
        /// The registrations among them.
        var sentRegistrations = 0
        /// The times from a batch to one of its readers, seconds.
        var delays: [Double] = []

        /// Batches a second.
        var batchRate: Double { Double(batches) / seconds }
        /// The mean number of records in a batch.
        var meanBatch: Double { batches == 0 ? 0 : Double(records) / Double(batches) }
    }

    private let constants: FleetConstants
    private let settings: FleetSettings
    private let limits = BatchLimits()
    private let postRate: Double
    private let registrationShare: Double
    private var chance: FleetChance
    private var events = Heap<Event>()
    private var eventCount = 0
    private var writers: [Writer] = []
    private var readers: [Reader]
    private var waiting: [Int] = []
    private var isLocked = false
    /// The times of all commits, and the records and registrations up to each.
    private var commits: [Double] = []
    private var recordsUpTo = [0]
    private var registrationsUpTo = [0]
    private var outcome: Outcome

    /// Creates a fleet in which nothing has happened.
    init(_ settings: FleetSettings, constants: FleetConstants) {
        (self.settings, self.constants) = (settings, constants)
        chance = FleetChance(seed: settings.seed)
        let registrations = Double(settings.clients) * constants.registrationsPerClient
        let all = settings.changes + registrations
        registrationShare = all > 0 ? registrations / all : 0
        postRate = all / Double(settings.writers)
        readers = [Reader](repeating: Reader(), count: settings.nodes)
        outcome = Outcome(seconds: settings.seconds)
    }

    /// Returns the outcome of some seconds of posts.
    mutating func run() -> Outcome {
        guard postRate > 0 else { return outcome }
        for number in 0..<settings.writers {
            let first = chance.interval(rate: postRate)
            writers.append(Writer(nextPost: first))
            schedule(.begin(writer: number), at: first)
        }
        while let event = events.popMin(), event.time <= settings.seconds {
            switch event.step {
            case .begin(let writer): begin(writer, at: event.time)
            case .ask(let writer): ask(writer, at: event.time)
            case .commit(let writer): commit(writer, at: event.time)
            case .notice(let writer): notice(writer, at: event.time)
            case .answer(let reader): answered(reader, at: event.time)
            case .read(let reader): read(reader, at: event.time)
            }
        }
        return outcome
    }

    private mutating func schedule(_ step: Step, at time: Double) {
        eventCount += 1
        events.insert(Event(time: time, number: eventCount, step: step))
    }

    // MARK: Writing

    /// Lets the posts arrive that came by now, as far as they fit into the queue.
    private mutating func arrive(at writer: Int, until now: Double) {
        while writers[writer].nextPost <= now {
            let at = writers[writer].nextPost
            if writers[writer].posts.count < limits.pendingPosts {
                let isRegistration = registrationShare > 0 && chance.unit() < registrationShare
                writers[writer].posts.append(Post(at: at, isRegistration: isRegistration))
            } else {
                outcome.refused += 1
            }
            writers[writer].nextPost = at + chance.interval(rate: postRate)
        }
    }

    private mutating func begin(_ number: Int, at now: Double) {
        arrive(at: number, until: now)
        var (count, registrations) = (0, 0)
        for post in writers[number].posts.prefix(limits.changes) {
            if post.isRegistration {
                guard registrations < limits.registrations else { break }
                registrations += 1
            }
            count += 1
        }
        guard count > 0 else {
            schedule(.begin(writer: number), at: writers[number].nextPost)
            return
        }
        (writers[number].inBatch, writers[number].registrations) = (count, registrations)
        let before = constants.roundTrip + constants.registrationInAppend * Double(registrations)
        schedule(.ask(writer: number), at: now + before)
    }

    private mutating func ask(_ number: Int, at now: Double) {
        writers[number].askedAt = now
        if isLocked {
            waiting.append(number)
        } else {
            grant(number, at: now)
        }
    }

    private mutating func grant(_ number: Int, at now: Double) {
        isLocked = true
        let time =
            constants.batchTime(changes: writers[number].inBatch)
            * chance.factor(deviation: constants.batchDeviation)
        outcome.lockHeld += time
        schedule(.commit(writer: number), at: now + time)
    }

    private mutating func commit(_ number: Int, at now: Double) {
        let (count, registrations) = (writers[number].inBatch, writers[number].registrations)
        outcome.batches += 1
        outcome.records += count
        outcome.registrations += registrations
        for post in writers[number].posts.prefix(count) { outcome.answers.append(now - post.at) }
        finish(number, at: now)
        commits.append(now)
        recordsUpTo.append(outcome.records)
        registrationsUpTo.append(outcome.registrations)
        tell(of: number, at: now)
        isLocked = false
        grantNext(at: now)
    }

    /// Ends the batch of a writer, which begins the next one.
    private mutating func finish(_ number: Int, at now: Double) {
        writers[number].posts.removeFirst(writers[number].inBatch)
        writers[number].inBatch = 0
        schedule(.begin(writer: number), at: now)
    }

    private mutating func grantNext(at now: Double) {
        while !waiting.isEmpty {
            let place = settings.grant == .fifo ? 0 : chance.index(below: waiting.count)
            let number = waiting.remove(at: place)
            guard now - writers[number].askedAt > constants.lockTimeout else {
                grant(number, at: now)
                return
            }
            outcome.refused += writers[number].inBatch
            finish(number, at: now)
        }
    }

    // MARK: Reading

    /// Notifies of a batch, at most once in a while for each writer.
    private mutating func tell(of number: Int, at now: Double) {
        guard !writers[number].isNoticeDue else { return }
        writers[number].isNoticeDue = true
        let due = writers[number].lastNotice + Double(limits.notifyInterval) / 1_000
        schedule(.notice(writer: number), at: max(now, due) + constants.roundTrip)
    }

    private mutating func notice(_ number: Int, at now: Double) {
        writers[number].isNoticeDue = false
        writers[number].lastNotice = now
        for reader in readers.indices {
            if readers[reader].isReading {
                readers[reader].isAwake = true
            } else {
                read(reader, at: now)
            }
        }
    }

    private mutating func read(_ number: Int, at now: Double) {
        let (from, to) = (readers[number].position, commits.count)
        (readers[number].isReading, readers[number].isAwake) = (true, false)
        readers[number].target = to
        let records = recordsUpTo[to] - recordsUpTo[from]
        outcome.queries += 1
        outcome.sent += records
        outcome.sentRegistrations += registrationsUpTo[to] - registrationsUpTo[from]
        let time =
            constants.roundTrip + constants.queryBase + constants.queryPerChange * Double(records)
        schedule(.answer(reader: number), at: now + time)
    }

    private mutating func answered(_ number: Int, at now: Double) {
        let (from, to) = (readers[number].position, readers[number].target)
        readers[number].position = to
        let applied =
            now + (constants.reading + constants.decision)
            * Double(recordsUpTo[to] - recordsUpTo[from])
        // Each batch counts once, at one of its readers.
        for batch in from..<to where batch % readers.count == number {
            outcome.delays.append(applied - commits[batch])
        }
        if readers[number].isAwake {
            schedule(.read(reader: number), at: applied)
        } else {
            readers[number].isReading = false
        }
    }
}
