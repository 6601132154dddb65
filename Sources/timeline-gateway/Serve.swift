import ArgumentParser
import Foundation
import GatewayCluster
import GatewayEngine
import GatewayOperations
import GatewayServer
import Logging
import WidgetModel

/// The options that select the configuration, the same for `serve` and `check-config`.
struct ConfigurationOptions: ParsableArguments {
    @Option(help: "Configuration file, YAML or JSON. Default: development mode.")
    var config: String?

    @Option(help: "Data directory; created if missing.")
    var data: String?

    @Option(
        help: """
            PostgreSQL servers whose log this node shares with others, postgres://LOGIN@HOST/DATABASE.
            """)
    var cluster: String?

    @Option(help: "TLS port, HOST:PORT. Port 0 lets the system choose.")
    var listen: String?

    @Option(
        help: """
            Port for metrics, health and the dashboard, HOST:PORT: plain HTTP on loopback, TLS \
            elsewhere.
            """)
    var admin: String?

    /// The flags given, by option key.
    var flags: [String: String] {
        var flags: [String: String] = [:]
        if let data { flags["data"] = data }
        if let cluster { flags["cluster.url"] = cluster }
        if let listen { flags["listen"] = listen }
        if let admin { flags["admin"] = admin }
        return flags
    }

    /// Reads the configuration.
    ///
    /// - Parameter checksFiles: Whether the files that it names are read, too.
    /// - Throws: `Faults` with every fault found.
    func load(checksFiles: Bool = false) throws(Faults) -> GatewayConfiguration {
        try GatewayConfiguration.read(
            file: config, flags: flags, environment: ProcessInfo.processInfo.environment,
            checksFiles: checksFiles,
            alsoChecks: { configuration throws(Faults) in _ = try configuration.nodeSettings() })
    }

    /// The options that the environment sets, which override the file.
    var variables: [String] {
        ConfigurationLayers(
            file: nil, flags: [:], environment: ProcessInfo.processInfo.environment
        ).variables
    }

    /// Reads the configuration again from the same sources whenever it is called.
    var reading: ConfigurationReload.Read {
        let (config, flags) = (config, flags)
        let environment = ProcessInfo.processInfo.environment
        return { received throws(Faults) in
            try GatewayConfiguration.read(
                file: config, flags: flags, environment: environment, received: received)
        }
    }
}

struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run the gateway.",
        discussion: """
            Prints one line, `ready https://HOST:PORT`, on standard output when it accepts \
            connections. SIGTERM or SIGINT drains the streams and exits with 0.

            Without --config it runs in development mode: loopback only, with its own certificates \
            and token issuer in the data directory (the CA is DATA/certs/ca.pem).

            If the database or keys are missing from a used data directory, the gateway does not \
            start. With --new it creates an empty log or new keys for what is missing, and keeps \
            the rest.

            EXAMPLES
              timeline-gateway serve --data ./data
              timeline-gateway serve --data ./data --listen 127.0.0.1:9443 --admin 127.0.0.1:9465
              timeline-gateway serve --config /etc/timeline-gateway.yaml
            """)

    @OptionGroup var options: ConfigurationOptions

    @Flag(
        name: .customLong("new"),
        help: "Recreate what is missing in the data directory: empty log, new keys.")
    var acceptsLoss = false

    func run() async throws {
        let configuration: GatewayConfiguration
        do throws(Faults) {
            configuration = try options.load()
        } catch {
            complain("The configuration is invalid:\n\(error)")
            throw ExitCode.wrongConfiguration
        }
        let log = GatewayLog(configuration.logFormat, configuration.logLevels)
        LoggingSystem.bootstrap { log.handler($0) }
        if configuration.isDevelopment { Self.announceDevelopment(configuration) }
        for notice in configuration.notices { complain(notice) }
        // Until it serves: a start may wait for a database, and process 1 of a container has no default
        // action.
        signal(SIGTERM) { _ in _exit(0) }
        do {
            let gateway = try await Gateway(
                configuration, log: log, acceptsLoss: acceptsLoss, read: options.reading)
            try await gateway.run { url, _ in
                answer("ready \(url)")
                ServiceManager.ready()
            }
        } catch let faults as Faults {
            complain("The configuration is invalid:\n\(faults)")
            throw ExitCode.wrongConfiguration
        } catch {
            complain("timeline-gateway: \(error)")
            throw ExitCode.failure
        }
    }

    private static func announceDevelopment(_ configuration: GatewayConfiguration) {
        complain(
            """
            ************************************************************************
            DEVELOPMENT MODE: no configuration was given. The gateway uses its own
            certificates and tokens and listens on loopback only. Not for production.
              data   \(configuration.data)
              CA     \(configuration.data)/certs/ca.pem
              token  timeline-gateway token --data \(configuration.data) --app APP --scope "SCOPES"
              admin  http://\(configuration.admin)/
            ************************************************************************
            """)
    }
}

struct CheckConfig: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Check a configuration and list all errors.",
        discussion: """
            Reads the file, the environment (TIMELINE_GATEWAY_…) and flags as `serve` does, and \
            changes nothing. Exits with 78 if there is an error.

            EXAMPLES
              timeline-gateway check-config --config gateway.yaml
              timeline-gateway check-config --options
            """)

    @OptionGroup var options: ConfigurationOptions

    @Flag(name: .customLong("options"), help: "List all options and exit.")
    var listsOptions = false

    @Flag(help: "Print JSON.")
    var json = false

    func run() throws {
        if listsOptions {
            printOptions()
            return
        }
        // First, because a fault may be of one of them.
        if !options.variables.isEmpty, !json {
            let names = options.variables.joined(separator: ", ")
            complain("Set by environment variables, which override the file: \(names)")
        }
        do throws(Faults) {
            let configuration = try options.load(checksFiles: true)
            for notice in configuration.notices { complain(notice) }
            answer(
                json
                    ? #"{"ok":true,"faults":[]}"#
                    : "The configuration is valid: TLS on \(configuration.listen), "
                        + "admin on \(configuration.admin)"
                        + (configuration.admin.isLoopback
                            ? "" : " with TLS, for tokens with the scope operator:read or operator")
                        + ", data in \(configuration.data).")
        } catch {
            if json {
                let answerJSON: JSONValue = [
                    "ok": false, "faults": .array(error.list.map(\.json)),
                ]
                answer(answerJSON.text)
            } else {
                complain("The configuration is invalid:\n\(error)")
            }
            throw ExitCode.wrongConfiguration
        }
    }

    private func printOptions() {
        for option in ConfigurationSchema.options {
            if json {
                let object: JSONValue = [
                    "key": .string(option.key), "default": .string(option.standard),
                    "help": .string(option.help),
                ]
                answer(object.text)
            } else {
                answer("\(option.key)  (default: \(option.standard))\n    \(option.help)")
            }
        }
    }
}
