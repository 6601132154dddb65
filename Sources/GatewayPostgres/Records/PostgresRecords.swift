import Synchronization

/// The log, the catalogs and the registrations of a cluster for the operators of a node, on a
/// thread and a connection of their own: their readings do not delay appends.
package final class PostgresRecords: Sendable {
    private struct State {
        var isClosed = false
        /// The number of readings without an outcome.
        var pending = 0
        var floor: Int64 = 0
        /// The time at which the floor was last read, or asked for.
        var floorAt: Int64?
    }

    /// The maximum number of readings that wait.
    package static let pendingMax = 1_024
    /// The time for which the floor is not read again, milliseconds.
    private static let floorAge: Int64 = 10_000

    private let loop: PostgresLoop
    private let rounds: PostgresRounds<RecordRound>
    private let known: @Sendable () -> BatchMark?
    private let state = Mutex(State())

    /// Connects at the first reading.
    ///
    /// - Parameters:
    ///   - address: The servers, with the login of the node.
    ///   - patience: The longest time for which a reading waits for those before it, and for its
    ///     answer, milliseconds.
    ///   - known: Returns the newest batch that the node has applied; `nil` for none. Nothing
    ///     behind it is read of the log.
    /// - Throws: `PostgresError` when the kernel provides no descriptor.
    package init(
        _ address: PostgresAddress, patience: Int64 = BatchLimits().deadline,
        known: @escaping @Sendable () -> BatchMark?
    ) throws(PostgresError) {
        loop = try PostgresLoop(name: "records")
        rounds = PostgresRounds(address, deadline: patience, patience: patience, on: loop)
        self.known = known
    }

    deinit { loop.end() }

    /// Reads nothing more; readings under way fail.
    package func close() {
        state.withLock { state in
            state.isClosed = true
            loop.end()
        }
    }

    /// The last sequence that the log may not have any more, as it was read at most 10 s ago or
    /// with the last reading; where it was not, it is read again for the next time.
    package var floor: Int64 {
        let (now, known) = (PostgresLoop.now, known())
        let (floor, isOld) = state.withLock { state in
            let isOld = state.floorAt.map { now - $0 >= Self.floorAge } ?? true
            // Asked for once, also when the answer does not come.
            if isOld, known != nil { state.floorAt = now }
            return (state.floor, isOld)
        }
        if isOld, let known { try? run(.readHeads([]), known: known) { _ in } }
        return floor
    }

    /// Reads batches of a range in its direction; fewer if they are many or large together, and
    /// none if the log has none of them.
    package func batches(in range: BatchRange) async throws(PostgresError) -> [StoredBatch] {
        let known = try newest()
        let (first, last) = (range.first, min(range.last, known.last))
        guard first <= last else { return [] }
        let range = BatchRange(first: first, last: last, range.direction)
        guard case .batches(let batches) = try await read(.readBatches(range), known: known)
        else { throw .unexpectedAnswer }
        return batches
    }

    /// Returns the batch that has a sequence; `nil` if the log has none.
    package func batch(of sequence: Int64) async throws(PostgresError) -> StoredBatch? {
        try await batches(in: BatchRange(first: sequence, last: sequence, .forwards))
            .first { $0.head.first <= sequence && sequence <= $0.head.position.last }
    }

    /// Returns the head of the batch that has a sequence; `nil` if the log has none.
    package func head(of sequence: Int64) async throws(PostgresError) -> BatchHead? {
        let known = try newest()
        return try await heads(of: sequence <= known.last ? [sequence] : [], known: known).first
    }

    /// Returns the last sequence of a batch that was written before a time, in milliseconds since
    /// 1970; the floor if there is none.
    package func lastSequence(before moment: Int64) async throws(PostgresError) -> Int64 {
        let known = try newest()
        // The floor comes with it.
        _ = try await heads(of: [], known: known)
        var search = TimeSearch(
            before: moment, above: state.withLock { $0.floor }, through: known.last)
        while !search.sequences.isEmpty {
            search.receive(try await heads(of: search.sequences, known: known))
        }
        return search.last
    }

    /// Returns the catalog of an app that was in force before a sequence; `nil` if there was none,
    /// or the app was removed since.
    package func catalog(
        of app: String, before sequence: Int64
    ) async throws(PostgresError) -> RecordRequest.CatalogVersion? {
        let known = try newest()
        guard app.isStorableName else { return nil }
        // A catalog behind the node's position is not in force here yet.
        let request = RecordRequest.readCatalog(
            app: app, before: min(sequence, known.last + 1), asOf: known.last)
        guard case .catalog(let version) = try await read(request, known: known) else {
            throw .unexpectedAnswer
        }
        return version
    }

    /// Reads a page of registrations, which are durable once its head is.
    package func registrations(
        _ listing: RegistrationListing
    ) async throws(PostgresError) -> RegistrationListing.Page {
        guard let listing = listing.storable else {
            return RegistrationListing.Page(rows: [], hasMore: false, head: 0)
        }
        let answer = try await read(.readRegistrations(listing), known: try newest())
        guard case .registrations(let page) = answer else { throw .unexpectedAnswer }
        return page
    }

    /// Returns the newest batch that the node has applied.
    private func newest() throws(PostgresError) -> BatchMark {
        guard let known = known() else {
            throw .connectionLost(reason: "this node has not read the log yet")
        }
        return known
    }

    private func heads(
        of sequences: [Int64], known: BatchMark
    ) async throws(PostgresError) -> [BatchHead] {
        guard case .heads(let heads) = try await read(.readHeads(sequences), known: known) else {
            throw .unexpectedAnswer
        }
        return heads
    }

    private func read(
        _ request: RecordRequest, known: BatchMark
    ) async throws(PostgresError) -> RecordRequest.Answer {
        let outcome = await withCheckedContinuation { continuation in
            do throws(PostgresError) {
                try run(request, known: known) { continuation.resume(returning: $0) }
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
        return try outcome.get().answer
    }

    /// - Throws: When the reading was not begun; `complete` is not called then.
    private func run(
        _ request: RecordRequest, known: BatchMark,
        complete: @escaping @Sendable (Result<RecordRound.Outcome, PostgresError>) -> Void
    ) throws(PostgresError) {
        try state.withLock { state throws(PostgresError) in
            guard !state.isClosed else { throw .connectionLost(reason: "the node stops") }
            guard state.pending < Self.pendingMax else { throw .busy }
            state.pending += 1
            rounds.run(RecordRound(request, known: known)) { outcome in
                self.note(outcome)
                complete(outcome)
            }
        }
    }

    private func note(_ outcome: Result<RecordRound.Outcome, PostgresError>) {
        state.withLock { state in
            state.pending -= 1
            guard case .success(let outcome) = outcome else { return }
            state.floor = max(state.floor, outcome.floor)
            state.floorAt = PostgresLoop.now
        }
    }
}
