import ArgumentParser
import Foundation
import TimelineClient
import TimelineClientHTTP
import WidgetModel

/// Plays many devices against a gateway.
struct DeviceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "device",
        abstract: "Simulate devices, and show how fresh they are.",
        discussion: """
            Each device is a client of its own, with this project's engine and a TLS connection: it \
            registers one to four widgets of the app's catalog, holds a stream, verifies what it is \
            told, rebuilds that and acknowledges it. What is configured follows from --seed: each \
            parameter has a value from item-1 to item-N, item-1 the most often (Zipf), and each \
            attribute that rules bind to as well. At the end the clients are removed.

            With --post it changes the data too, and knows what is due: then it also measures from \
            each change to the acknowledged rebuild, as the gateway's \
            timeline_gateway_freshness_confirmed_seconds does, and fails with 5 for a reload that \
            did not come within --patience or that nothing asked for. Nobody else may post to the \
            app meanwhile.

            The token needs catalog:write (to read the catalog), tokens:issue (for the clients' \
            tokens; the gateway's own issuer must be enabled) and, with --post, changes:write. \
            With --tokens the clients' tokens are read from a file, one a line, such as \
            `timeline-gateway token --scope client --subs-from ids.txt` prints.

            Examples:
              timelinectl device --devices 100
              timelinectl device --devices 1000 --post 10 --duration 60
              timelinectl device --devices 10000 --seed 7 --items 5000 --post 2 \\
                --admin 127.0.0.1:9464
              timelinectl device --tokens tokens.txt --catalog catalog.yaml --devices 50 --json
            """)

    @OptionGroup var options: CommonOptions
    @OptionGroup var app: AppOption

    @Option(help: "How many, 1 to 10,000.")
    var devices = 100

    @Option(help: "All choices follow from it.")
    var seed: UInt64 = 1

    @Option(help: "Values that parameters and attributes have, 1 to 1,000,000.")
    var items = 1_000

    @Option(
        help: ArgumentHelp("Changes to post in a second; none when left out.", valueName: "rate"))
    var post: Double?

    @Option(
        help: ArgumentHelp(
            "How long to run once all devices are ready; until Ctrl-C when left out.",
            valueName: "seconds"))
    var duration: Double?

    @Option(
        name: .customLong("build-ms"),
        help: ArgumentHelp("How long a rebuild takes, on average.", valueName: "milliseconds"))
    var buildMilliseconds = 50

    @Option(help: ArgumentHelp("How late a reload may be.", valueName: "seconds"))
    var patience = 30.0

    @Option(help: ArgumentHelp("From figures to figures.", valueName: "seconds"))
    var every = 2.0

    @Option(help: ArgumentHelp("The clients' tokens, one a line.", valueName: "file"))
    var tokens: String?

    @Option(help: ArgumentHelp("The catalog, instead of the gateway's.", valueName: "file"))
    var catalog: String?

    @Option(
        help: ArgumentHelp(
            "The gateway's admin port: compares with its own metric.", valueName: "host:port"))
    var admin: String?

    func validate() throws {
        func check(_ isRight: Bool, _ text: String) throws {
            guard isRight else { throw ValidationError(text) }
        }
        try check((1...10_000).contains(devices), "--devices is 1 to 10,000")
        try check((1...Popularity.ranksMax).contains(items), "--items is 1 to 1,000,000")
        try check(post.map { 0.001...10_000 ~= $0 } ?? true, "--post is 0.001 to 10,000 a second")
        try check(
            duration.map { 0.1...2_500_000 ~= $0 } ?? true, "--duration is 0.1 to 2,500,000 seconds"
        )
        try check((0...60_000).contains(buildMilliseconds), "--build-ms is 0 to 60,000")
        try check(0.1...3_600 ~= patience, "--patience is 0.1 to 3,600 seconds")
        try check(0.1...3_600 ~= every, "--every is 0.1 to 3,600 seconds")
        try check(admin.map { AdminOptions.origin($0) != nil } ?? true, "--admin is HOST:PORT")
    }

    /// The connection to the admin port, if its metrics were requested.
    ///
    /// - Throws: `ValidationError`.
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
            else { throw ValidationError("the catalog has no widget that a person can place") }
            let fleet = try Fleet(
                plan, app: app, configuration: configuration, backend: backend, order: self)
            try await fleet.run()
        } catch let failure as GatewayFailure {
            throw Terminal.fail(failure, as: options.form)
        }
    }

    private func readCatalog(_ app: String, _ backend: GatewayService) async throws -> Catalog {
        let file: CatalogFile
        if let catalog {
            file = try CatalogFile(bytes: try Terminal.read(catalog))
        } else {
            file = try await CatalogFile(bytes: backend.catalog())
        }
        do throws(DocumentRefusal) {
            return try Catalog(
                contentType: file.mediaType, body: file.bytes, app: app, limits: .none)
        } catch {
            throw ValidationError("the catalog cannot be used: \(error)")
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
        let progress = Progress("tokens", of: devices)
        return try await concurrently(orders, atOnce: 16) { order in
            defer { progress.step() }
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
