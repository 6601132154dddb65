import ArgumentParser
import CatalogModel
import Foundation
import TimelineRuntime
import WidgetModel

struct DeviceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "device",
        abstract: "Simulate devices and measure their freshness.",
        discussion: """
            Each device is a separate client with this SDK's engine and its own TLS connection: it \
            registers one to four widgets of the app's catalog, opens a stream, verifies each \
            notification, rebuilds the stale timelines and acknowledges them. Parameters, and \
            attributes that rules bind to, get values from item-1 to item-N by a Zipf distribution \
            seeded with --seed; item-1 is the most frequent. The clients are removed at the end.

            With --post it also posts changes and knows which reloads to expect: it measures the \
            time from each change to the acknowledged rebuild, as the gateway's \
            timeline_gateway_freshness_confirmed_seconds does, and exits with 5 if a reload does \
            not arrive within --patience or arrives without a change. Nothing else may post to \
            the app during the run.

            The token needs catalog:write (to read the catalog), tokens:issue (for the clients' \
            tokens; the gateway's own issuer must be enabled) and, with --post, changes:write. \
            With --tokens the clients' tokens are read from a file, one per line, as printed by \
            `timeline-gateway token --scope client --subs-from ids.txt`.

            Examples:
              timelinectl device --devices 100
              timelinectl device --devices 1000 --post 10 --duration 60
              timelinectl device --devices 10000 --seed 7 --items 5000 --post 2 \\
                --admin 127.0.0.1:9464
              timelinectl device --tokens tokens.txt --catalog catalog.yaml --devices 50 --json
            """)

    @OptionGroup var options: CommonOptions
    @OptionGroup var app: AppOption

    @Option(help: "Number of devices, 1 to 10,000.")
    var devices = 100

    @Option(help: "Random seed.")
    var seed: UInt64 = 1

    @Option(help: "Number of distinct parameter and attribute values, 1 to 1,000,000.")
    var items = 1_000

    @Option(
        help: ArgumentHelp("Changes to post per second. Default: none.", valueName: "rate"))
    var post: Double?

    @Option(
        help: ArgumentHelp(
            "Run time once all devices are ready. Default: until Ctrl-C or SIGTERM.",
            valueName: "seconds"))
    var duration: Double?

    @Option(
        name: .customLong("build-ms"),
        help: ArgumentHelp("Mean duration of a rebuild.", valueName: "milliseconds"))
    var buildMilliseconds = 50

    @Option(help: ArgumentHelp("Timeout for a reload.", valueName: "seconds"))
    var patience = 30.0

    @Option(help: ArgumentHelp("Reporting interval.", valueName: "seconds"))
    var every = 2.0

    @Option(help: ArgumentHelp("The clients' tokens, one per line.", valueName: "file"))
    var tokens: String?

    @Option(help: ArgumentHelp("Catalog to use instead of the gateway's.", valueName: "file"))
    var catalog: String?

    @Option(
        help: ArgumentHelp(
            "Admin port: compare with the gateway's freshness metric.", valueName: "host:port"))
    var admin: String?

    func validate() throws {
        func check(_ isRight: Bool, _ text: String) throws {
            guard isRight else { throw ValidationError(text) }
        }
        try check((1...10_000).contains(devices), "--devices must be 1 to 10,000")
        try check((1...Popularity.ranksMax).contains(items), "--items must be 1 to 1,000,000")
        try check(post.map { 0.001...10_000 ~= $0 } ?? true, "--post must be 0.001 to 10,000")
        try check(
            duration.map { 0.1...2_500_000 ~= $0 } ?? true, "--duration must be 0.1 to 2,500,000"
        )
        try check((0...60_000).contains(buildMilliseconds), "--build-ms must be 0 to 60,000")
        try check(0.1...3_600 ~= patience, "--patience must be 0.1 to 3,600")
        try check(0.1...3_600 ~= every, "--every must be 0.1 to 3,600")
        try check(admin.map { AdminOptions.origin($0) != nil } ?? true, "--admin must be HOST:PORT")
    }

    /// The connection to the admin port, if its metrics were requested. Throws `ValidationError`.
    func adminConnection() throws -> AdminConnection? {
        guard let admin else { return nil }
        var port = AdminOptions()
        // The token in the environment is a backend's.
        (port.admin, port.ca, port.token) = (admin, options.ca, nil)
        return try port.connection()
    }

    func run() async throws {
        let configuration = try options.configuration()
        let app = try app.required()
        try Fleet.requireOpenFiles(devices: devices)
        let backend = GatewayService(connection: try options.connection(), app: app)
        let clientsOfFile = try tokens.map { try SimulatedClient.read($0, count: devices) }
        do {
            let catalog = try await readCatalog(app, backend)
            let clients: [SimulatedClient]
            if let clientsOfFile {
                clients = clientsOfFile
            } else {
                clients = try await makeClients(catalog, backend)
            }
            guard
                let plan = FleetPlan(catalog: catalog, clients: clients, items: items, seed: seed)
            else { throw ValidationError("the catalog has no widget that a user can place") }
            let fleet = try Fleet(
                plan, app: app, configuration: configuration, backend: backend, order: self)
            try await fleet.run()
        } catch let failure as GatewayFailure {
            throw Terminal.fail(failure, as: options.form)
        }
    }

    private func readCatalog(_ app: String, _ backend: GatewayService) async throws -> Catalog {
        guard let catalog else { return try await backend.catalog() }
        let file = try CatalogFile(bytes: try Terminal.read(catalog))
        do throws(DocumentRefusal) {
            return try Catalog(
                contentType: file.mediaType, body: file.bytes, app: app, limits: .none)
        } catch {
            throw ValidationError("the catalog is invalid: \(error)")
        }
    }

    private func makeClients(
        _ catalog: Catalog, _ backend: GatewayService
    ) async throws -> [SimulatedClient] {
        let names = Set(
            catalog.widgets.flatMap(\.dependsOn).flatMap(\.match).compactMap { match in
                if case .clientAttribute(let name) = match.binding { name } else { nil }
            }
        ).sorted()
        let popularity = Popularity(ranks: items)
        var generator = SplitMix64(seed: seed)
        let orders = (1...devices).map { number in
            (
                id: "device-\(seed)-\(number)",
                attributes: Dictionary(
                    names.map { ($0, FleetPlan.item(popularity.draw(using: &generator))) },
                    uniquingKeysWith: { $1 })
            )
        }
        let ttl = Duration.seconds(min(2_592_000, (duration ?? 82_800) + 3_600))
        let (progress, count) = (Progress("tokens"), Int64(devices))
        return try await concurrently(orders, atOnce: 16) { order in
            defer { progress.reach(of: count) }
            return try await SimulatedClient.made(
                order.id, attributes: order.attributes, ttl: ttl, by: backend)
        }
    }
}

/// Performs an operation for each element, at most `atOnce` at a time. Results keep the elements'
/// order.
func concurrently<Element: Sendable, Result: Sendable>(
    _ elements: [Element], atOnce: Int,
    _ perform: @escaping @Sendable (Element) async throws -> Result
) async throws -> [Result] {
    try await withThrowingTaskGroup(of: (Int, Result).self) { group in
        var results = [Result?](repeating: nil, count: elements.count)
        for (place, element) in elements.enumerated() {
            if place >= atOnce, let (done, result) = try await group.next() {
                results[done] = result
            }
            group.addTask { (place, try await perform(element)) }
        }
        for try await (done, result) in group { results[done] = result }
        return results.compactMap { $0 }
    }
}
