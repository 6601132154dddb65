import Foundation
import GatewayDocuments
import GatewayHTTP
import GatewayOperations
import GatewaySigning
import TimelineClient
import TimelineClientHTTP
import WidgetModel

/// Diagnostics that send requests to other services.
enum DoctorVisit {
    /// The largest clock difference, in seconds, before requests are rejected.
    private static let clockFail: Int64 = 60
    private static let clockWarn: Int64 = 5

    /// Checks a gateway's TLS port.
    static func gateway(_ connection: CurlConnection) async -> [Finding] {
        let response: GatewayResponse
        do throws(ConnectionError) {
            response = try await connection.send(
                GatewayRequest(target: "/.well-known/jwks.json"))
        } catch {
            return [
                Finding(
                    .fail, subject: "gateway", what: error.message,
                    remedy:
                        "Look at the address and whether it runs; for a certificate that is not "
                        + "trusted, at --ca and the names it is issued for.")
            ]
        }
        var findings = [
            Finding(
                .ok, subject: "gateway",
                what: "is reached, by a certificate that is trusted and its name")
        ]
        findings.append(keys(response))
        if let finding = clock(response.head["date"], now: Int64(Date().timeIntervalSince1970)) {
            findings.append(finding)
        }
        return findings
    }

    private static func keys(_ response: GatewayResponse) -> Finding {
        guard response.head.status == 200, let set = try? JWKSet(parsing: response.body) else {
            return Finding(
                .fail, subject: "published keys",
                what: "are not read: status \(response.head.status)",
                remedy: "Ask for /.well-known/jwks.json with curl: something else may answer "
                    + "there.")
        }
        guard !set.keys.isEmpty else {
            return Finding(
                .fail, subject: "published keys", what: "are none: no notification verifies",
                remedy: "Look at the gateway's log.")
        }
        return Finding(
            .ok, subject: "published keys", what: "\(set.keys.count), of which any may sign")
    }

    /// Compares the clock of the sender of a `Date` header with ours.
    static func clock(_ date: String?, now: Int64) -> Finding? {
        guard let date, let theirs = HTTPDate.seconds(date) else { return nil }
        let ahead = theirs - now
        let words = "its clock is \(abs(ahead)) s \(ahead < 0 ? "behind" : "ahead of") this one"
        if abs(ahead) <= clockWarn {
            return Finding(.ok, subject: "clock", what: "agrees with this one")
        }
        return Finding(
            abs(ahead) > clockFail ? .fail : .warn, subject: "clock", what: words,
            remedy: "Tokens and notifications go by time: keep both right with chrony or "
                + "systemd-timesyncd.")
    }

    /// Checks a gateway's admin port.
    static func admin(_ admin: AdminConnection) async -> [Finding] {
        do throws(GatewayFailure) {
            let overview = try Overview(
                answer: .object(try await admin.page("/api/overview?after=\(Int64.max)")))
            let first =
                overview.ready
                ? Finding(.ok, subject: "readiness", what: "is ready")
                : Finding(
                    .fail, subject: "readiness", what: "is not ready",
                    remedy: "See below for what fails.")
            return [first]
                + overview.troubles.map {
                    Finding(
                        $0.level == "critical" ? .fail : .warn, subject: "now", what: $0.what,
                        remedy: $0.remedy)
                }
        } catch {
            return [
                Finding(
                    .fail, subject: "admin port", what: "\(error)",
                    remedy: "Look at the option admin, and whether the gateway runs.")
            ]
        }
    }

    /// Checks APNs: a connection, TLS, HTTP/2 and any response. Nothing is pushed.
    static func pushService(_ host: String, _ port: Int, trust: String?) async -> Finding {
        let place = "\(host):\(port)"
        var configuration = CurlConnection.Configuration(gateway: "https://\(place)")
        configuration.caFile = trust
        configuration.connectDeadline = .seconds(5)
        configuration.requestDeadline = .seconds(10)
        do throws(ConnectionError) {
            let connection = try CurlConnection(configuration)
            let response = try await connection.send(GatewayRequest(target: "/"))
            return Finding(
                .ok, subject: "APNs",
                what: "\(place) answers, with the status \(response.head.status) to what is no "
                    + "push")
        } catch {
            return Finding(
                .warn, subject: "APNs", what: "\(place): \(error.message)",
                remedy: "Let the firewall pass TCP to it (443 and 2197), and keep the system's CA "
                    + "certificates up to date.")
        }
    }
}
