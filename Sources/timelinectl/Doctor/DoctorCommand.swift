import ArgumentParser
import Foundation
import GatewayCluster
import GatewayOperations
import TimelineRuntime
import WidgetModel

struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Check a gateway's environment and suggest fixes.",
        discussion: """
            With --config or --data, run on the gateway's machine as its user, it checks the \
            configuration and its files, certificate, permissions of the data directory, disk, \
            database, ports, file and kernel limits, clock, DNS, the database of a cluster, and \
            whether APNs and FCM are reachable (nothing is pushed). Without --config the environment \
            variables apply, as for the gateway.

            With --url, from any machine, it checks that the gateway is reachable with a trusted \
            certificate for its name, its published keys, and its clock against the local one. \
            With --admin it checks that the gateway is ready and lists the problems it reports.

            Changes nothing. Exit status 1 if a check fails, otherwise 0.

            Examples:
              timelinectl doctor --config /etc/timeline-gateway.yaml
              timelinectl doctor --data ./data
              timelinectl doctor --url https://gateway.example.com:8443 --json
            """)

    @Option(help: ArgumentHelp("The gateway's configuration.", valueName: "file"))
    var config: String?

    @Option(help: ArgumentHelp("The gateway's data directory.", valueName: "directory"))
    var data: String?

    @Option(help: ArgumentHelp("The gateway's origin.", valueName: "url"))
    var url: String?

    @Option(help: ArgumentHelp("The admin port.", valueName: "host:port"))
    var admin: String?

    @Option(help: ArgumentHelp("Certificates to trust (TIMELINE_GATEWAY_CA).", valueName: "file"))
    var ca: String?

    @Option(
        help: ArgumentHelp(
            "A token with the scope operator:read, for --admin.", valueName: "token"))
    var token: String?

    @Flag(help: "Print JSON, one document per line.")
    var json = false

    func validate() throws {
        guard config != nil || data != nil || url != nil || admin != nil else {
            throw ValidationError("give at least one of --config, --data, --url and --admin")
        }
    }

    func run() async throws {
        var findings: [DiagnosticResult] = []
        if config != nil || data != nil { findings += await local() }
        if url != nil { findings += try await DoctorVisit.gateway(connection()) }
        if admin != nil { findings += try await DoctorVisit.admin(adminConnection()) }
        let failed = findings.filter { $0.level == .fail }.count
        let warned = findings.filter { $0.level == .warn }.count
        let document: JSONValue = [
            "ok": .bool(failed == 0), "findings": .array(findings.map(\.json)),
        ]
        Terminal.print(document, as: json ? .json : .text) {
            (findings.flatMap { Self.lines($0, Terminal.palette()) }
                + ["", "\(findings.count) checks, \(warned) warnings, \(failed) failures"])
                .joined(separator: "\n")
        }
        if failed > 0 { throw ExitStatus.refused }
    }

    private func local() async -> [DiagnosticResult] {
        var flags: [String: String] = [:]
        if let data { flags["data"] = data }
        let configuration: GatewayConfiguration
        do throws(Faults) {
            configuration = try GatewayConfiguration.read(
                file: config, flags: flags, environment: ProcessInfo.processInfo.environment)
        } catch {
            return Self.wrong(error)
        }
        let examination = Diagnostics(configuration)
        var findings = examination.findings()
        do throws(Faults) {
            if let node = try configuration.nodeSettings() {
                findings += ClusterExamination.findings(
                    of: node, runsHere: examination.holder != nil)
            }
        } catch {
            findings.removeAll { $0.subject == "configuration" && $0.level == .ok }
            findings += Self.wrong(error)
        }
        for service in examination.pushServices {
            findings.append(await DoctorVisit.pushService(service))
        }
        return findings
    }

    private static func wrong(_ faults: Faults) -> [DiagnosticResult] {
        faults.list.map {
            DiagnosticResult(
                .fail, subject: "configuration", what: $0.description,
                remedy: "Correct it; `timeline-gateway check-config --options` lists all options.")
        }
    }

    private func connection() throws -> CurlConnection {
        var options = CommonOptions()
        (options.url, options.ca, options.token) = (url, ca, nil)
        var configuration = try options.configuration()
        // These requests need no token.
        configuration.bearerToken = nil
        configuration.requestDeadline = .seconds(15)
        do throws(ConnectionError) {
            return try CurlConnection(configuration)
        } catch {
            throw ValidationError(error.message)
        }
    }

    private func adminConnection() throws -> AdminConnection {
        var options = AdminOptions()
        (options.admin, options.ca, options.token) = (admin, ca, token)
        return try options.connection()
    }

    private static func lines(_ finding: DiagnosticResult, _ palette: Palette) -> [String] {
        let mark =
            switch finding.level {
            case .ok: palette.good("ok  ")
            case .warn: palette.poor("WARN")
            case .fail: palette.bad("FAIL")
            }
        let subject = finding.subject.padding(toLength: 15, withPad: " ", startingAt: 0)
        let first = "\(mark)  \(subject)  " + TextBlock.line(finding.what)
        guard !finding.remedy.isEmpty else { return [first] }
        return [first, String(repeating: " ", count: 23) + TextBlock.line(finding.remedy)]
    }
}
