extension BatchWriter {
    /// Handles the answer to the first unanswered request.
    mutating func receive(
        _ answer: Result<WriteAnswer, PostgresError>, at now: Int64,
        using generator: inout some RandomNumberGenerator
    ) {
        switch (phase, answer) {
        case (.identifying, .success(.identified(let identity))):
            identified(identity, at: now, using: &generator)
        case (.fencing(let identity), .success(.fenced(let generation))):
            fenced(identity, generation: generation, at: now)
        case (.fencing, .failure(.lockTimeout)):
            // A statement of the old connection still runs, perhaps without a standby.
            send([.fence], at: now)
        case (.finding(let batch, let identity, _), .success(.found(let position))):
            phase = .finding(batch, identity, position)
        case (.finding(let batch, let identity, let position), .success(.durability(let settings))):
            found(batch, identity, at: position, settings, at: now, using: &generator)
        case (.probing, .success(.read(let outcome))), (.reading, .success(.read(let outcome))):
            readings.receive(outcome)
        case (.probing, .success(.durability(let settings))),
            (.reading, .success(.durability(let settings))):
            read(settings, at: now, using: &generator)
        case (.probing(let batch), .success(.probed(let result))):
            probed(batch, result, at: now, using: &generator)
        case (.confirming(let batch, _), .success(.appended(let position))):
            phase = .confirming(batch, appended: .success(position))
        case (.confirming(let batch, _), .failure(let error))
        where pacing.unanswered > 0 && error.wroteNothing:
            // The answer about the settings follows.
            phase = .confirming(batch, appended: .failure(error))
        case (.confirming(let batch, let appended), .success(.durability(let settings))):
            confirmed(batch, appended, settings, at: now, using: &generator)
        case (.announcing, .success(.durability(let settings))):
            if let objection = settings.objection(to: requirement) {
                disconnect(.notDurable(objection), at: now, using: &generator)
            } else {
                phase = .ready
                beginBatch(at: now)
            }
        case (.deleting, .success(.deleted(let hasMore))):
            mustDelete = hasMore
            phase = .ready
            beginBatch(at: now)
        case (.deleting, .failure(let error)) where error.wroteNothing:
            // Left to the next connection or removal.
            mustDelete = false
            phase = .ready
            beginBatch(at: now)
        case (_, .failure(let error)): failed(error, at: now, using: &generator)
        case (_, .success): failed(.unexpectedAnswer, at: now, using: &generator)
        }
    }

    /// Gives the connection up after an error.
    mutating func failed(
        _ error: PostgresError, at now: Int64, using generator: inout some RandomNumberGenerator
    ) {
        switch error {
        case .wrongIsolation, .unknownNode, .logClosed, .schema:
            disconnect(.misconfigured(error), at: now, using: &generator)
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
        guard !identity.isPrivileged else {
            return failed(
                .schema(reason: "the login may write every table; use the login of a node"),
                at: now, using: &generator)
        }
        if let objection = identity.durability.objection(to: requirement) {
            return disconnect(.notDurable(objection), at: now, using: &generator)
        }
        // Nothing is written on a server before the node's own history was found on it.
        guard identity.logID == logID ?? identity.logID,
            asked == nil || identity.chain == asked?.chain
        else { return disconnect(.tailLost, at: now, using: &generator) }
        logID = identity.logID
        phase = .fencing(identity)
        send([.fence], at: now)
    }

    private mutating func fenced(_ identity: ServerIdentity, generation: Int64, at now: Int64) {
        self.generation = generation
        guard let batch = unresolved, let call = batch.call else {
            return becomeReady(identity, at: now)
        }
        unresolved = nil
        phase = .finding(batch, identity, nil)
        send(
            [.find(batch: call.batch, after: call.probed), .readDurability(notifies: false)],
            at: now)
    }

    /// A batch with an unknown outcome was looked for.
    private mutating func found(
        _ batch: PendingBatch, _ identity: ServerIdentity, at position: LogPosition?,
        _ settings: Durability, at now: Int64, using generator: inout some RandomNumberGenerator
    ) {
        if let objection = settings.objection(to: requirement) {
            return disconnect(.notDurable(objection), at: now, using: &generator)
        }
        if let position {
            advance(to: position)
            for (ticket, outcome) in batch.outcomes(last: position.last) {
                complete(ticket, outcome)
            }
        } else {
            // It is not in the log and cannot come any more.
            retried = batch.waiting + retried
        }
        becomeReady(identity, at: now)
    }

    /// Rows were read, and the settings after them.
    private mutating func read(
        _ settings: Durability, at now: Int64, using generator: inout some RandomNumberGenerator
    ) {
        if let objection = settings.objection(to: requirement) {
            return disconnect(.notDurable(objection), at: now, using: &generator)
        }
        for (ticket, outcome) in readings.complete() {
            actions.append(.completeReading(ticket: ticket, outcome))
        }
        guard case .reading = phase else { return }
        phase = .ready
        beginBatch(at: now)
    }

    private mutating func probed(
        _ batch: PendingBatch, _ result: ProbeResult, at now: Int64,
        using generator: inout some RandomNumberGenerator
    ) {
        var batch = PendingBatch(batch.waiting)
        batch.decide(by: result, generation: generation, using: &generator)
        phase = .confirming(batch, appended: .success(nil))
        if let call = batch.call {
            send([.append(call), .readDurability(notifies: notifiesNow(at: now))], at: now)
        } else {
            // Also a duplicate is only answered when the settings say that what is visible is
            // durable.
            send([.readDurability(notifies: false)], at: now)
        }
    }

    private mutating func confirmed(
        _ batch: PendingBatch, _ appended: Result<LogPosition?, PostgresError>,
        _ settings: Durability, at now: Int64, using generator: inout some RandomNumberGenerator
    ) {
        if let objection = settings.objection(to: requirement) {
            return disconnect(.notDurable(objection), at: now, using: &generator)
        }
        switch appended {
        case .success(let position):
            guard (position == nil) == (batch.call == nil) else {
                return failed(.unexpectedAnswer, at: now, using: &generator)
            }
            if let position {
                if batch.removesApp { mustDelete = true }
                advance(to: position)
            }
            for (ticket, outcome) in batch.outcomes(last: position?.last ?? 0) {
                complete(ticket, outcome)
            }
            phase = .ready
            beginBatch(at: now)
        case .failure(.raced):
            wasRaced = true
            retried = batch.waiting + retried
            phase = .ready
            beginBatch(at: now)
        case .failure(.lockTimeout):
            for entry in batch.waiting { complete(entry.write.ticket, .refused(.unavailable)) }
            phase = .ready
            beginBatch(at: now)
        case .failure(.fenced):
            // The new connection fences again.
            failed(.fenced, at: now, using: &generator)
        case .failure(let error):
            for entry in batch.waiting { complete(entry.write.ticket, .refused(.unavailable)) }
            phase = .ready
            failed(error, at: now, using: &generator)
        }
    }
}
