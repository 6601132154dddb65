/// The registrations and the log bytes of an app, or a change of both.
package struct AppUsage: Sendable, Hashable {
    /// The number of registrations.
    package var clients: Int
    /// The bytes of the payloads of stored log rows and catalogs.
    package var logBytes: Int

    /// Creates a usage. The default is no usage.
    package init(clients: Int = 0, logBytes: Int = 0) {
        self.clients = clients
        self.logBytes = logBytes
    }

    package static func += (usage: inout AppUsage, change: AppUsage) {
        usage.clients += change.clients
        usage.logBytes += change.logBytes
    }
}

/// The usage of every app that uses anything.
package struct UsageTable: Sendable, Equatable {
    private var usages: [String: AppUsage] = [:]

    package init() {}

    package subscript(app: String) -> AppUsage { usages[app] ?? AppUsage() }

    /// Adds a change to the usage of an app. An app that uses nothing takes no memory.
    package mutating func add(_ change: AppUsage, to app: String) {
        func isNothing(_ usage: inout AppUsage) -> Bool {
            usage += change
            return usage == AppUsage()
        }
        if isNothing(&usages[app, default: AppUsage()]) { usages[app] = nil }
    }

    /// Adds a change of every app in another table.
    package mutating func add(_ changes: UsageTable) {
        for (app, change) in changes.usages { add(change, to: app) }
    }

    /// Returns the apps with any usage, sorted by one resource, the highest first.
    package func apps(
        byMost resource: KeyPath<AppUsage, Int>
    ) -> [(app: String, usage: AppUsage)] {
        usages.sorted {
            ($1.value[keyPath: resource], $0.key) < ($0.value[keyPath: resource], $1.key)
        }.map { (app: $0.key, usage: $0.value) }
    }
}

/// The usage of every app within one transaction: the usage on disk, and the changes of the
/// transaction's jobs. A failed job's changes are dropped.
///
/// The usage on disk stays unchanged here: the writer adds ``changes`` to it after the commit.
package struct StagedUsage: Sendable {
    private let committed: UsageTable
    /// The changes of the jobs that have succeeded.
    package private(set) var changes = UsageTable()
    /// The changes of the running job. Consecutive changes of the same app are one entry, so that a
    /// job with many changes needs no lookups.
    private var jobChanges: [(app: String, change: AppUsage)] = []

    /// Begins a transaction.
    package init(committed: UsageTable) {
        self.committed = committed
    }

    /// Returns the usage of an app, changes of the transaction included.
    package func usage(of app: String) -> AppUsage {
        var usage = committed[app]
        usage += changes[app]
        for entry in jobChanges where entry.app == app { usage += entry.change }
        return usage
    }

    /// Adds a change that the running job makes.
    package mutating func add(_ change: AppUsage, to app: String) {
        if let last = jobChanges.indices.last, jobChanges[last].app == app {
            jobChanges[last].change += change
        } else {
            jobChanges.append((app, change))
        }
    }

    /// Ends the running job: adds its changes, or drops them if it failed.
    package mutating func endJob(succeeded: Bool) {
        if succeeded {
            for entry in jobChanges { changes.add(entry.change, to: entry.app) }
        }
        jobChanges.removeAll(keepingCapacity: true)
    }
}
