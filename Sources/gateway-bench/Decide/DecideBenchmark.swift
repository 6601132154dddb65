import Foundation
import GatewayCore
import WidgetModel

/// What one run of ``DecideBenchmark`` found.
struct DecideFigures: Sendable, Codable, Equatable {
    /// Configured widgets of all clients.
    var widgets = 0
    /// Widget kinds.
    var kinds = 0
    /// Changes decided.
    var changes = 0
    /// Decisions in one second of one core: decided, versions raised, collapse windows asked,
    /// holders visited.
    var decisionsPerSecond = 0.0
    /// Nanoseconds of one decision, with its deliveries.
    var decisionNanoseconds = 0.0
    /// Deliveries of one decision on average, those that end of windows sent included.
    var deliveriesPerDecision = 0.0
    /// Bytes by which the live index grows with one configured widget.
    /// `nil` below a hundred thousand widgets, where pages are too coarse a measure.
    var indexBytesPerWidget: Double?
    /// Bytes the core holds for one client with an open stream, index included, registration not.
    var coreBytesPerClient = 0.0
    /// Bytes of one client's registration, which the gateway holds whether or not it is connected.
    var recordBytesPerClient = 0.0
    /// Nanoseconds to open one client's stream.
    var openNanoseconds = 0.0
    /// Nanoseconds to close it and open it again.
    var reopenNanoseconds = 0.0
    /// Nanoseconds of a change that names no item and reaches every client of its kinds, per
    /// delivery.
    var broadDeliveryNanoseconds = 0.0
}

/// Measures how fast one core decides changes, and what the live index costs, by the core's own
/// interface: no network, disk or signing takes part.
enum DecideBenchmark {
    /// The sizes of the curve: the cost of a change must not grow along it.
    static let curveWidgets = [10_000, 100_000, 1_000_000, 10_000_000]

    /// Opens a stream for each client and decides `changes` changes.
    ///
    /// With `isCountOnly` the same thousand changes come again and again, made beforehand: an
    /// instruction counter that sees the whole process then sees one decision more for each
    /// change more.
    ///
    /// Ten million widgets take 6 GiB of memory and about a minute.
    static func run(
        widgets: Int, kinds: Int, changes: Int,
        keyHolders: Int = DecideWorkload.keyHoldersDefault, isCountOnly: Bool = false,
        progress: (String) -> Void
    ) -> DecideFigures {
        var workload = DecideWorkload(widgets: widgets, kinds: kinds, keyHolders: keyHolders)
        var figures = DecideFigures()
        figures.widgets = workload.widgets
        figures.kinds = workload.kinds
        progress("registering \(workload.clients) clients with \(workload.widgets) widgets")
        let empty = residentBytes
        let clients = (0..<workload.clients).map(workload.client)
        let registered = residentBytes
        let count = Double(max(1, clients.count))
        figures.recordBytesPerClient = Double(registered - empty) / count

        progress("opening \(clients.count) streams")
        // The same streams without a key, held meanwhile, tell what the keys alone cost.
        var keyless = DecideGateway(workload.catalog())
        for client in clients { keyless.open(client, kinds: []) }
        let opening = residentBytes
        var gateway = DecideGateway(workload.catalog())
        let opened = ProcessorTime.nanoseconds {
            for client in clients { gateway.open(client, kinds: nil) }
        }
        let withKeys = residentBytes - opening
        let withoutKeys = opening - registered
        if workload.widgets >= 100_000 {
            figures.indexBytesPerWidget =
                Double(withKeys - withoutKeys) / Double(workload.widgets)
        }
        figures.coreBytesPerClient = Double(withKeys) / count
        figures.openNanoseconds = opened / count
        keyless = DecideGateway(workload.catalog())

        let reopened = min(clients.count, 10_000)
        let reopening = ProcessorTime.nanoseconds {
            for index in 0..<reopened { gateway.reopen(index, clients[index]) }
        }
        figures.reopenNanoseconds = reopening / Double(max(1, reopened))

        progress("deciding \(changes) changes")
        decide(changes, isCountOnly, &workload, &gateway, &figures)

        let entities = min(20, workload.kinds / 2)
        let deliveredBefore = gateway.deliveries
        let broad = ProcessorTime.nanoseconds {
            for entity in 0..<entities { gateway.decide(Change(entity: "Entity\(entity)")) }
        }
        let delivered = gateway.deliveries - deliveredBefore
        figures.broadDeliveryNanoseconds = broad / Double(max(1, delivered))
        return figures
    }

    private static var residentBytes: Int64 { ProcessFigures.residentBytes([getpid()]) }

    private static func decide(
        _ changes: Int, _ isCountOnly: Bool, _ workload: inout DecideWorkload,
        _ gateway: inout DecideGateway,
        _ figures: inout DecideFigures
    ) {
        let block = 1_000
        var elapsed = 0.0
        var decided = 0
        // The first of them warm caches and fill the version window.
        let warming = (0..<(isCountOnly ? block : max(block, changes / 10)))
            .map { _ in workload.nextChange() }
        gateway.decideAll(warming)
        gateway.deliveries = 0
        while decided < changes {
            let count = min(block, changes - decided)
            let next =
                isCountOnly
                ? Array(warming.prefix(count)) : (0..<count).map { _ in workload.nextChange() }
            elapsed += ProcessorTime.nanoseconds { gateway.decideAll(next) }
            decided += count
        }
        let count = Double(max(1, decided))
        figures.changes = decided
        figures.decisionNanoseconds = elapsed / count
        figures.decisionsPerSecond = 1e9 / max(1e-9, figures.decisionNanoseconds)
        figures.deliveriesPerDecision = Double(gateway.deliveries) / count
    }
}
