import GatewayCore
import GatewayPush
import NIOCore

/// Clients that nodes share: each node pushes to those of its partitions.
extension PushLoop {
    func apply(_ event: PushPartitions.Event, now: Int64) {
        switch event {
        case .acquired(let id): partitions?.acquire(id)
        case .registrations(let id, let records, let position):
            partitions?.add(records, of: id, asOf: position)
        case .progress(let id, let progress, let position):
            partitions?.add(progress, of: id, asOf: position)
        case .loaded(let id): partitions?.complete(id)
        case .handOver(let id):
            partitions?.leave(id)
            leaving[id] = now + Self.leavingMax
        case .lost(let id):
            leaving[id] = nil
            for key in partitions?.remove(id) ?? [] { scheduler.release(key) }
        }
    }

    /// The longest wait for the pushes in flight to the clients of a partition that another node
    /// takes over, in milliseconds. The other node repeats a push whose result is not known.
    private static let leavingMax: Int64 = 5_000

    /// Restores some clients of loaded partitions; returns whether there were any.
    func restoreClients(now: Int64) -> Bool {
        let restored = partitions?.restorations(at: scheduler.position, limit: Self.restoredMax)
        guard let restored, !restored.isEmpty else {
            scheduler.lookAtRestored(now: now)
            return false
        }
        let wall = clock.wallMilliseconds()
        for client in restored {
            scheduler.restore(
                client.record, app: client.key.app, client.progress?.saved,
                told: client.progress?.told ?? 0, clear: client.progress?.clear ?? 0, now: now,
                wall: wall)
        }
        return true
    }

    /// Reads the knowledge of other nodes, or of the loops, about clients that are about to be
    /// pushed to.
    func readEvidence(of keys: [ClientKey], _ dependencies: Dependencies) {
        guard let place = dependencies.storage.shared else {
            for key in keys {
                Task {
                    let sent = try? await dependencies.sent(key)
                    loop.execute { [self] in
                        scheduler.received(
                            PushScheduler.Evidence.none, about: key, sentUpTo: sent, now: now)
                        act()
                    }
                }
            }
            return
        }
        for start in stride(from: 0, to: keys.count, by: Self.evidenceMax) {
            let part = Array(keys[start..<min(start + Self.evidenceMax, keys.count)])
            place.readEvidence(of: part) { [self] evidence in
                loop.execute { self.received(evidence, about: part, place) }
            }
        }
    }

    private func received(
        _ evidence: [ClientKey: PushScheduler.Evidence]?, about keys: [ClientKey],
        _ place: any SharedPushes
    ) {
        let now = now
        for key in keys {
            // Asked here, because a push follows at once.
            let known = place.mayPush && partitions?.mayPush(to: key) == true ? evidence : nil
            scheduler.received(known.map { $0[key] ?? .none }, about: key, now: now)
        }
        act()
    }

    /// The interval at which changes are handed to the place that nodes share.
    private static let sharingInterval = TimeAmount.milliseconds(250)
    /// The interval between records of the position up to which nothing is owed, in milliseconds.
    private static let clearInterval: Int64 = 10_000

    /// Stores what changed, and schedules the next time.
    func share(_ place: any SharedPushes) {
        let contacts = contacts.takeChanged()
        if !contacts.isEmpty { place.store(contacts) }
        let changed = scheduler.takeChanged(
            limit: Self.savedMax, now: now, wall: clock.wallMilliseconds())
        store(changed, in: place)
        let isFull = changed.count == Self.savedMax
        if !isFull { storeClear(in: place) }
        settleLeaving(in: place)
        loop.scheduleTask(in: isFull ? .zero : Self.sharingInterval) { self.share(place) }
    }

    /// Stores the progress of clients.
    private func store(
        _ changed: [(key: ClientKey, saved: PushScheduler.SavedClient?)], in place: any SharedPushes
    ) {
        let rows = changed.compactMap { key, saved -> PushProgressRow? in
            // The database removes the state of a client together with its registration.
            guard let saved, let progress = scheduler.progress(of: key),
                let partition = partitions?.partition(of: key)
            else { return nil }
            return PushProgressRow(
                partition: partition, key: key, progress: progress, saved: saved)
        }
        if !rows.isEmpty { place.store(rows) }
    }

    /// Stores the position up to which clients are owed only the changes that their rows state. All
    /// rows must have been stored before.
    private func storeClear(in place: any SharedPushes) {
        guard now >= clearDue, let partitions else { return }
        clearDue = now + Self.clearInterval
        for id in partitions.complete { place.store(clear: scheduler.clear, of: id) }
    }

    /// Hands over the partitions with no push in flight to their clients, and those that waited for
    /// the longest time.
    private func settleLeaving(in place: any SharedPushes) {
        guard !leaving.isEmpty, let partitions else { return }
        let busy = Set(scheduler.clientsUnderWay.compactMap(partitions.partition))
        let now = now
        for (id, end) in leaving where now >= end || isStopping || !busy.contains(id) {
            settle(id, in: place)
        }
    }

    private func settle(_ id: PushPartitions.ID, in place: any SharedPushes) {
        guard let clients = partitions?.clients(of: id) else { return }
        let changed = scheduler.takeChanged(
            among: clients, now: now, wall: clock.wallMilliseconds())
        store(changed, in: place)
        if partitions?.isComplete(id) == true {
            place.store(clear: scheduler.clear, of: id)
        }
        leaving[id] = nil
        for key in partitions?.remove(id) ?? [] { scheduler.release(key) }
        place.settle(id)
    }
}
