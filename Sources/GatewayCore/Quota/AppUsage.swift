/// The registrations and the log bytes of an app, or a change of both.
package struct AppUsage: Sendable, Hashable {
    /// The number of registrations.
    package var clients: Int
    /// The bytes of the payloads of log rows and catalogs that are kept.
    package var logBytes: Int

    /// Creates a usage; of nothing by default.
    package init(clients: Int = 0, logBytes: Int = 0) {
        self.clients = clients
        self.logBytes = logBytes
    }

    /// Adds a change to a usage.
    package static func += (usage: inout AppUsage, change: AppUsage) {
        usage.clients += change.clients
        usage.logBytes += change.logBytes
    }
}

/// The usage of every app that uses anything.
package struct UsageTable: Sendable, Equatable {
    private var usages: [String: AppUsage] = [:]

    /// Creates a table in which no app uses anything.
    package init() {}

    /// Returns the usage of an app.
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

    /// The apps that use anything, those first that use most of one resource.
    package func apps(
        byMost resource: KeyPath<AppUsage, Int>
    ) -> [(app: String, usage: AppUsage)] {
        usages.sorted {
            ($1.value[keyPath: resource], $0.key) < ($0.value[keyPath: resource], $1.key)
        }.map { (app: $0.key, usage: $0.value) }
    }
}

/// The usage of every app as the jobs of one transaction see it: what is on disk, and what the jobs
/// have changed.
///
/// Changes of a job that fails are dropped. The usage on disk is not touched: the writer adds
/// ``changes`` to it once the transaction is committed.
package struct StagedUsage: Sendable {
    private let committed: UsageTable
    /// The changes of the jobs that have succeeded.
    package private(set) var changes = UsageTable()
    /// The changes of the job that runs; neighbours of one app are one entry, so that a post adds
    /// numbers and looks nothing up.
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

    /// Ends the running job: keeps its changes, or drops them if it has failed.
    package mutating func endJob(succeeded: Bool) {
        if succeeded {
            for entry in jobChanges { changes.add(entry.change, to: entry.app) }
        }
        jobChanges.removeAll(keepingCapacity: true)
    }
}
