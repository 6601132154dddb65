extension PartitionKeeper {
    /// Handles the answer to a request.
    mutating func receive(
        _ answer: Result<PartitionAnswer, PostgresError>, to request: PartitionRequest,
        at now: Int64, using generator: inout some RandomNumberGenerator
    ) {
        switch (request, answer) {
        case (.identify, .success(.identified(let identity))):
            identified(identity, at: now, using: &generator)
        case (.attach, .success(.done)), (.forgetHeard, .success(.done)): break
        case (.renew, .success(.renewed(let renewal))): self.renewal = renewal
        case (.readDurability, .success(.durability(let settings))):
            confirmed(settings, at: now, using: &generator)
        case (.take, .success(.taken(let partitions))):
            for partition in partitions { acquire(partition) }
        case (.release(let partitions), .success(.done)): released(partitions)
        case (.flush, .success(.flushed(let lost))):
            confirmFlush()
            lose(lost)
        case (.hear, .success(.done)): heard.confirm()
        case (.loadRegistrations, .success(.loaded(let portion, let isLast))),
            (.loadStates, .success(.loaded(let portion, let isLast))):
            loaded(portion, isLast: isLast, at: now)
        case (.lookUp, .success(.lookedUp(let evidence))): lookedUp(evidence)
        // A lock was not free: the request is repeated later.
        case (.renew, .failure(.lockTimeout)) where isRunning: renewLater(at: now)
        case (.take, .failure(.lockTimeout)), (.forgetHeard, .failure(.lockTimeout)): break
        case (.release(let partitions), .failure(.lockTimeout)): releaseLater(partitions)
        case (.flush, .failure(.lockTimeout)): restoreFlush()
        case (.hear, .failure(.lockTimeout)): heard.restore()
        case (_, .failure(let error)): failed(error, at: now, using: &generator)
        case (_, .success): failed(.unexpectedAnswer, at: now, using: &generator)
        }
    }

    private var isRunning: Bool { if case .running = phase { true } else { false } }

    /// Gives the connection up after an error.
    mutating func failed(
        _ error: PostgresError, at now: Int64, using generator: inout some RandomNumberGenerator
    ) {
        switch error {
        case .wrongIsolation, .unknownNode, .logClosed, .schema:
            disconnect(.misconfigured(error), at: now, using: &generator)
        case .fenced:
            // Another process has taken the node over, and its partitions with it.
            loseAll()
            disconnect(.disconnected(error), at: now, using: &generator)
        default: disconnect(.disconnected(error), at: now, using: &generator)
        }
    }

    private mutating func identified(
        _ identity: ServerIdentity, at now: Int64,
        using generator: inout some RandomNumberGenerator
    ) {
        do throws(PostgresError) {
            try ClusterSchema.check(identity.version, isAtStart: true)
        } catch {
            return failed(error, at: now, using: &generator)
        }
        if let objection = identity.durability.objection(to: requirement) {
            return disconnect(.notDurable(objection), at: now, using: &generator)
        }
        // Nothing is written on a server before the node's own history was found on it: what was
        // told and confirmed of another history only goes upwards.
        guard hasHistory(of: identity) else {
            return disconnect(.tailLost, at: now, using: &generator)
        }
        logID = identity.logID
        identified(startedAt: identity.startedAt, at: now, using: &generator)
    }

    private func hasHistory(of identity: ServerIdentity) -> Bool {
        identity.logID == logID ?? identity.logID
            && (asked == nil || identity.chain == asked?.chain)
    }

    /// The settings after a renewal are known.
    private mutating func confirmed(
        _ settings: Durability, at now: Int64, using generator: inout some RandomNumberGenerator
    ) {
        if let objection = settings.objection(to: requirement) {
            return disconnect(.notDurable(objection), at: now, using: &generator)
        }
        guard let renewal else { return }
        self.renewal = nil
        renewed(renewal, at: now)
    }

    /// A portion of a partition was read.
    private mutating func loaded(_ portion: PartitionPortion, isLast: Bool, at now: Int64) {
        let number = portion.partition.number
        guard case .loading(var progress) = holding(portion.partition)?.stage else { return }
        switch portion.rows {
        case .registrations(let rows):
            progress.registrations = isLast ? .ended : .next(after: rows.last?.name)
        case .states(let rows, _):
            progress.states = isLast ? .ended : .next(after: rows.last?.name)
        }
        holdings[number]?.stage = .loading(progress)
        actions.append(.deliver(portion))
        // The other table's portion is on its way.
        if inFlight.contains(where: { $0.loadedPartition == portion.partition }) { return }
        guard progress.registrations == .ended, progress.states == .ended else {
            return loadFurther(number)
        }
        holdings[number]?.stage = .owned
        // Spread evenly, so that not all are written together.
        holdings[number]?.clearDue =
            now + Int64(number) * Self.clearInterval / Int64(Partition.count)
        actions.append(.finishLoading(portion.partition))
    }

    private mutating func lookedUp(_ evidence: [PartitionedClient: DeliveryEvidence]) {
        for lookUp in lookUpsInFlight {
            var found: [PartitionedClient: DeliveryEvidence] = [:]
            for client in lookUp.clients {
                found[client] = evidence[client] ?? DeliveryEvidence.none
            }
            actions.append(.complete(ticket: lookUp.ticket, found))
        }
        lookUpsInFlight = []
    }
}
