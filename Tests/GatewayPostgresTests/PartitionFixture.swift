import ClusterTestSupport
import Foundation
import GatewayPostgres
import GatewayTestSupport

/// A node's partitions on a thread of their own, with an owner that settles what it has to hand over.
final class PartitionFixture: Sendable {
    private let loop: PostgresLoop
    let partitions: PostgresPartitions
    private let reports: TestHTTPMonitor<[PostgresPartitions.Report]>
    private let owned: TestHTTPMonitor<Set<Partition>>

    /// Adds a node.
    ///
    /// - Parameter startedAt: The start time of the server that its writer is said to be ready on.
    init(
        _ address: PostgresAddress, _ requirement: Durability.Requirement = .primary,
        from position: LogPosition? = nil, startedAt: Int64?
    ) throws {
        loop = try PostgresLoop(name: "partitions")
        var limits = BatchLimits()
        limits.deadline = Int64(Patience.milliseconds)
        let reports = TestHTTPMonitor<[PostgresPartitions.Report]>([])
        let owned = TestHTTPMonitor<Set<Partition>>([])
        (self.reports, self.owned) = (reports, owned)
        let relay = TestHTTPMonitor<PostgresPartitions?>(nil)
        let partitions = PostgresPartitions(
            address, requirement, from: position, limits: limits, on: loop
        ) { report in
            switch report {
            case .loaded(let partition): owned.update { _ = $0.insert(partition) }
            case .lost(let partitions): owned.update { $0.subtract(partitions) }
            case .handOver(let partitions):
                owned.update { $0.subtract(partitions) }
                for partition in partitions { relay.update { $0 }?.settle(partition) }
            default: break
            }
            reports.update { $0.append(report) }
        }
        self.partitions = partitions
        relay.update { $0 = partitions }
        observe(startedAt: startedAt)
    }

    deinit { loop.end() }

    /// Tells the server that the node's writer is ready on.
    func observe(startedAt: Int64?) {
        guard let startedAt else { return partitions.observe(.unready(.tailLost)) }
        partitions.observe(
            .ready(
                ServerIdentity(
                    version: 1, logID: 0, chain: nil,
                    durability: Durability(
                        standbyNames: "", isFlushed: true, writesFullPages: true),
                    startedAt: startedAt)))
    }

    /// The partitions and leases that are loaded.
    var loaded: Set<Partition> { owned.update { $0 } }

    /// The numbers of the partitions and leases that are loaded.
    var numbers: Set<Int32> { Set(loaded.map(\.number)) }

    /// Waits until the node has so many partitions and leases.
    func wait(forCount count: Int) throws {
        guard owned.wait(seconds: Patience.seconds, { $0.count == count ? true : nil }) != nil
        else {
            throw TestFailure("\(loaded.count) of \(count) partitions; \(reportsText)")
        }
    }

    /// Waits for a report, also an earlier one.
    @discardableResult
    func wait<Value>(_ body: (PostgresPartitions.Report) -> Value?) throws -> Value {
        let value = reports.wait(seconds: Patience.seconds) { $0.lazy.compactMap(body).first }
        guard let value else { throw TestFailure("no such report; \(reportsText)") }
        return value
    }

    private var reportsText: String {
        let others = reports.update { $0 }.filter {
            switch $0 {
            case .acquired, .portion, .loaded: false
            default: true
            }
        }
        return others.suffix(3).map { "\($0)".prefix(200) }.joined(separator: "; ")
    }

    /// The rows of push state that were reported for a partition.
    func states(of number: Int32) -> [PushStateRow] {
        reports.update { $0 }.flatMap { report -> [PushStateRow] in
            guard case .portion(let portion) = report, portion.partition.number == number,
                case .states(let rows, _) = portion.rows
            else { return [] }
            return rows
        }
    }

    /// The rows of registrations that were reported for a partition.
    func registrations(of number: Int32) -> [PartitionRegistration] {
        reports.update { $0 }.flatMap { report -> [PartitionRegistration] in
            guard case .portion(let portion) = report, portion.partition.number == number,
                case .registrations(let rows) = portion.rows
            else { return [] }
            return rows
        }
    }

    /// Reads the evidence of clients.
    func lookUp(_ clients: PartitionedClient...) throws -> PostgresPartitions.Evidence {
        let answer = TestHTTPMonitor<PostgresPartitions.Evidence?>(nil)
        partitions.lookUp(clients) { evidence in answer.update { $0 = .some(evidence) } }
        guard let evidence = answer.wait(seconds: Patience.seconds, { $0 }) else {
            throw TestFailure("no evidence")
        }
        return evidence
    }
}

extension ClusterFixture {
    /// The start time of the server, in microseconds since 1970.
    func startedAt() throws -> Int64 {
        let rows = try administration().rows(
            "SELECT (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint")
        return try rows.first?.integer(0) ?? 0
    }

    /// Waits until a query has a row whose first column is this number. Sums of no rows are NULL.
    func wait(for number: Int64, _ query: String) throws {
        let connection = try administration()
        var last: Int64?
        try blockUntil("\(number)", details: { "\(query): \(last.map { "\($0)" } ?? "no row")" }) {
            last = try connection.rows(query).first.flatMap { try? $0.integer(0) }
            return last == number
        }
    }
}
