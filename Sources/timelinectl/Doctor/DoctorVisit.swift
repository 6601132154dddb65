import Foundation
import GatewayDocuments
import GatewayOperations
import GatewaySigning
import TimelineRuntime
import WidgetModel

/// Diagnostics that send requests to other services.
enum DoctorVisit {
    /// The largest clock difference, in seconds, before requests are rejected.
    private static let clockFail: Int64 = 60
    private static let clockWarn: Int64 = 5

    /// Checks a gateway's TLS port.
    static func gateway(_ connection: CurlConnection) async -> [DiagnosticResult] {
        let response: GatewayResponse
        do throws(ConnectionError) {
            response = try await connection.send(
                GatewayRequest(target: "/.well-known/jwks.json"))
        } catch {
            return [
                DiagnosticResult(
                    .fail, subject: "gateway", what: error.message,
                    remedy:
                        "Check the address and that the gateway is running; if its certificate is not "
                        + "trusted, check --ca and the names in the certificate.")
            ]
        }
        var findings = [
            DiagnosticResult(
                .ok, subject: "gateway", what: "reachable, with a trusted certificate for its name")
        ]
        findings.append(keys(response))
        if let finding = clock(response.head["date"], now: Int64(Date().timeIntervalSince1970)) {
            findings.append(finding)
        }
        return findings
    }

    private static func keys(_ response: GatewayResponse) -> DiagnosticResult {
        guard response.head.status == 200, let set = try? JWKSet(parsing: response.body) else {
            return DiagnosticResult(
                .fail, subject: "published keys",
                what: "cannot be read: status \(response.head.status)",
                remedy: "Request /.well-known/jwks.json with curl: another server may be answering."
            )
        }
        guard !set.keys.isEmpty else {
            return DiagnosticResult(
                .fail, subject: "published keys", what: "none: no notification can be verified",
                remedy: "Check the gateway's log.")
        }
        return DiagnosticResult(
            .ok, subject: "published keys", what: "\(set.keys.count), all usable for signing")
    }

    /// Compares the clock of the sender of a `Date` header with ours.
    static func clock(_ date: String?, now: Int64) -> DiagnosticResult? {
        guard let date, let theirs = HTTPDate.seconds(date) else { return nil }
        let ahead = theirs - now
        let words = "\(abs(ahead)) s \(ahead < 0 ? "behind" : "ahead of") the local clock"
        if abs(ahead) <= clockWarn {
            return DiagnosticResult(.ok, subject: "clock", what: "agrees with the local clock")
        }
        return DiagnosticResult(
            abs(ahead) > clockFail ? .fail : .warn, subject: "clock", what: words,
            remedy: "Tokens and notifications depend on the time: synchronise both machines with "
                + "chrony or systemd-timesyncd.")
    }

    /// Checks a gateway's admin port.
    static func admin(_ admin: AdminConnection) async -> [DiagnosticResult] {
        do throws(GatewayFailure) {
            let overview = try Overview(
                answer: .object(try await admin.page("/api/overview?after=\(Int64.max)")))
            let first =
                overview.ready
                ? DiagnosticResult(.ok, subject: "readiness", what: "ready")
                : DiagnosticResult(
                    .fail, subject: "readiness", what: "not ready",
                    remedy: "See the failures below.")
            let troubles = overview.troubles.map {
                DiagnosticResult(
                    $0.level == "critical" ? .fail : .warn, subject: "now", what: $0.what,
                    remedy: $0.remedy)
            }
            return [first] + troubles + (try await pushProblems(admin))
        } catch {
            return [
                DiagnosticResult(
                    .fail, subject: "admin port", what: "\(error)",
                    remedy: "Check the option admin, and that the gateway is running.")
            ]
        }
    }

    /// Returns the push problems of every app since the gateway started.
    private static func pushProblems(
        _ admin: AdminConnection
    ) async throws(GatewayFailure) -> [DiagnosticResult] {
        var results: [DiagnosticResult] = []
        for app in try AppList(answer: .object(try await admin.page("/api/apps"))).apps {
            results += try await admin.events(of: app.app).map { pushProblem($0, of: app.app) }
        }
        return results
    }

    /// Returns a push problem; its text says what to do.
    static func pushProblem(_ event: PushEvent, of app: String) -> DiagnosticResult {
        let client = event.client.map { " client \($0)," } ?? ""
        return DiagnosticResult(
            .warn, subject: "pushes of \(app)",
            what: "\(event.text) (\(event.times) times,\(client) last \(event.time))",
            remedy: "See the event \(event.event) in Deploy/push.md.")
    }

    /// Checks a push service: a connection, TLS, HTTP/2 and any response. Nothing is pushed.
    static func pushService(_ service: Diagnostics.Service) async -> DiagnosticResult {
        let place = "\(service.host):\(service.port)"
        var configuration = CurlConnection.Configuration(gateway: "https://\(place)")
        configuration.caFile = service.trust
        configuration.connectDeadline = .seconds(5)
        configuration.requestDeadline = .seconds(10)
        do throws(ConnectionError) {
            let connection = try CurlConnection(configuration)
            let response = try await connection.send(GatewayRequest(target: "/"))
            return DiagnosticResult(
                .ok, subject: service.name,
                what:
                    "\(place) answers; status \(response.head.status) to a request that is not a push"
            )
        } catch {
            return DiagnosticResult(
                .warn, subject: service.name, what: "\(place): \(error.message)",
                remedy:
                    "Allow outgoing TCP to this host and port in the firewall, and keep the system's CA "
                    + "certificates up to date.")
        }
    }
}
