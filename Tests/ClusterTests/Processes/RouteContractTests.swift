import APNsSimulator
import ClusterTestSupport
import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// Every route of clients, backends and operators, asked at a node that the client did not meet.
///
/// The judge is a gateway alone with the same configuration: the same requests have the same answers,
/// but for ids, cursors and times.
@Suite(.enabled(if: PostgresServer.isInstalled), .repeatedAfterStalls)
struct RouteContractTests {
    @Test func `each node answers each route as a gateway alone does`() throws {
        let gateways = try ClusterGateways(ClusterFixture(), pushes: true)
        let alone = try gateways.startAlone(admin: GatewayProcess.freeAddress())
        let expected = RouteScript(gateways, home: alone, asked: alone)
        try expected.run()
        #expect(try Set(expected.answers.map(\.route)) == routes(of: alone))
        // The first one leads.
        let nodes = try [1, 2].map {
            try gateways.makeNode($0, admin: GatewayProcess.freeAddress())
        }
        for (home, asked) in [(0, 1), (1, 0)] {
            let found = RouteScript(gateways, home: nodes[home], asked: nodes[asked])
            try found.run()
            let different = zip(expected.answers, found.answers).filter { $0 != $1 }.map {
                "\n\($0.route)\nalone:  \($0.text)\nnode \(asked): \($1.text)"
            }
            #expect(different.isEmpty, "\(different.joined())")
        }
    }

    /// Returns the ids of the operations of both ports, without the dashboard's files and its stream.
    private func routes(of gateway: GatewayProcess) throws -> Set<String> {
        let documents = try [gateway.http(), gateway.adminHTTP()].map {
            try $0.request("GET", "/openapi.json").text
        }
        let ids = documents.joined().matches(of: /"operationId": ?"(\w+)"/).map { String($0.1) }
        return Set(ids.filter { !$0.hasPrefix("getFile_") })
            .subtracting(["getDashboard", "getLive"])
    }
}

/// The requests of a backend, an operator and clients, and the answers.
private final class RouteScript {
    struct Answer: Equatable {
        let route: String
        let text: String
    }

    private let gateways: ClusterGateways
    /// The gateway that knows the clients, and the one that is asked.
    private let home: GatewayProcess
    private let asked: GatewayProcess
    private let app = "/v1/apps/\(ClusterGateways.app)"
    private(set) var answers: [Answer] = []

    init(
        _ gateways: ClusterGateways, home: GatewayProcess, asked: GatewayProcess
    ) {
        (self.gateways, self.home, self.asked) = (gateways, home, asked)
    }

    /// Asks a route, and keeps the answer.
    ///
    /// - Parameter part: What is compared of the body.
    @discardableResult
    private func ask(
        _ route: String, _ method: String, _ path: String, as client: String? = nil,
        fields: [(String, String)] = [], _ body: String? = nil, isAdmin: Bool = false,
        part: (TestHTTPAnswer) -> JSONValue? = { $0.json }
    ) throws -> TestHTTPAnswer {
        let port = isAdmin ? asked.adminHTTP() : asked.http()
        let answer = try gateways.repeating {
            try port.request(
                method, path, token: isAdmin ? nil : token(client), headers: fields, body: body)
        }
        let rest = part(answer).map { masked($0).text } ?? ""
        answers.append(Answer(route: route, text: "\(answer.status) \(rest)"))
        return answer
    }

    private func token(_ client: String?) throws -> String {
        guard let client else { return try gateways.backend() }
        return try gateways.token(client, attributes: ["account": [client == "lamp" ? "2" : "1"]])
    }

    /// Replaces what no two gateways have in common.
    private func masked(_ value: JSONValue, name: String = "") -> JSONValue {
        switch value {
        case .string(let text):
            let own: Set = [
                "cursor", "digest", "next", "token", "ticket", "reference", "id", "nonce",
            ]
            let isOwn =
                own.contains(name)
                || text.contains(/^\d{4}-\d\d-\d\dT/)
            return isOwn ? "…" : value
        case .integer:
            let isPlace = [
                "sequence", "head", "since", "confirmed", "latest", "into", "catalog", "watermark",
                "told", "after", "through", "before", "delivered", "ms",
            ].contains(name)
            return isPlace ? "…" : value
        case .number: return "…"
        case .object where ["recent", "hour"].contains(name): return "…"
        case .array(let elements):
            let elements = elements.map { masked($0, name: name) }
            // Clients are examples in no order.
            guard elements.allSatisfy({ $0.stringValue != nil }) else { return .array(elements) }
            return .array(elements.sorted { $0.text < $1.text })
        case .object(var object):
            // The counts of outcomes have names that are places elsewhere.
            let isCounts = object["collapsed"] != nil
            for member in object.members {
                object[member.name] = masked(member.value, name: isCounts ? "" : member.name)
            }
            return .object(object)
        default: return value
        }
    }

    /// Waits until the asked gateway has the newest entry of the log.
    private func settle() throws {
        func newest(_ gateway: GatewayProcess) throws -> JSONValue? {
            try gateways.repeating {
                try gateway.http().request("GET", app + "/changes?limit=1", token: token(nil))
            }["changes"]
        }
        try blockUntil("the nodes agree on the log") { try newest(home) == newest(asked) }
    }

    private func register(_ client: String, pushToken: String?) throws -> String {
        let document = registration(
            showing: ["panda"], delivery: addresses(pushToken: pushToken))
        let answer = try gateways.repeating {
            try home.http().request(
                "PUT", app + "/clients/\(client)", token: token(client), body: document.text)
        }
        guard answer.status == 201, let cursor = answer["cursor"]?.stringValue else {
            throw TestFailure(answer.text)
        }
        return cursor
    }

    func run() throws {
        try gateways.putCatalog(home)
        let phone = try register("phone", pushToken: String(repeating: "a1", count: 32))
        let pad = try register("pad", pushToken: nil)
        // The asked gateway does not know of this one until it is erased.
        _ = try register("lamp", pushToken: nil)
        try blockUntil("the clients are known") {
            try asked.http().request("GET", app + "/clients/pad", token: token(nil)).status == 200
        }
        try catalogs()
        let sequence = try changes(pad: pad)
        try clients(phone: phone, sequence)
        try operators()
        try ports()
        try removals()
    }

    private func catalogs() throws {
        let document = try gateways.repeating {
            try home.http().request("GET", app + "/catalog", token: token(nil))
        }.text
        let type = [("Content-Type", "application/yaml")]
        try ask("putCatalog", "PUT", app + "/catalog", fields: type, document) { _ in nil }
        try settle()
        try ask("getCatalog", "GET", app + "/catalog")
        try ask("compareCatalog", "POST", app + "/catalog/diff", fields: type, document)
    }

    private func changes(pad cursor: String) throws -> Int64 {
        let change = event(source: "test", id: "1", entity: "Character", key: "panda").text
        let type = [("Content-Type", "application/cloudevents+json")]
        let stream = try gateways.stream("pad", from: cursor, at: home)
        let posted = try ask("postChanges", "POST", app + "/changes", fields: type, change)
        guard let sequence = posted["sequence"]?.integerValue else {
            throw TestFailure(posted.text)
        }
        guard try stream.next() == ["panda"] else { throw TestFailure("the stream says nothing") }
        try settle()
        try awaitStreams(1, of: "pad")
        let start = #"{"id": "1", "type": "battle", "channel": "battles"}"#
        try ask("postActivity", "POST", app + "/activities", start)
        try ask("offerChanges", "OPTIONS", app + "/changes") { _ in nil }
        try ask("listChanges", "GET", app + "/changes?limit=1")
        try ask("explainChanges", "POST", app + "/changes/explain", fields: type, change)
        stream.close()
        try awaitStreams(0, of: "pad")
        return sequence
    }

    /// Waits until the asked gateway knows of so many streams.
    private func awaitStreams(_ count: Int64, of client: String) throws {
        try blockUntil("\(client) has \(count) streams") {
            try asked.http().request("GET", app + "/clients/\(client)", token: token(nil))[
                "streams"] == .integer(count)
        }
    }

    private var attempts: String { app + "/attempts?client=phone" }

    /// Waits until the asked gateway lists so many pushes: they are listed once their answers are
    /// stored.
    private func awaitAttempts(_ count: Int) throws {
        try blockUntil("\(count) attempts are listed") {
            try asked.http().request("GET", attempts, token: token(nil))["attempts"]?
                .arrayValue?.count == count
        }
    }

    private func clients(phone cursor: String, _ sequence: Int64) throws {
        let me = app + "/clients/phone"
        try awaitAttempts(1)
        try ask("explainClient", "GET", me + "/explain")
        try ask("explainChange", "GET", app + "/changes/\(sequence)/explain")
        try ask("postPush", "POST", me + "/pushes", #"{"channel": "widgets"}"#)
        try awaitAttempts(2)
        try ask("listAttempts", "GET", attempts)
        let poll = try ask("getReloads", "GET", me + "/reloads?since=\(cursor)", as: "phone") {
            .integer(Int64($0["notifications"]?.arrayValue?.count ?? -1))
        }
        try ask("postTicket", "POST", me + "/tickets", as: "phone")
        let acknowledged: JSONValue = ["cursor": poll["cursor"] ?? ""]
        try ask("postAcknowledgement", "POST", me + "/acks", as: "phone", acknowledged.text)
        try blockUntil("the leader knows of it") {
            try asked.http().request("GET", me, token: token("phone"))["stale"] == 0
        }
        try ask("explainClient", "GET", me + "/explain")
        try ask("getClient", "GET", me, as: "phone")
        try ask("patchClient", "PATCH", me, as: "phone", #"{"osVersion": "26.2"}"#)
        let document = registration(showing: ["panda"], delivery: addresses(pushToken: nil))
        try ask("putClient", "PUT", me, as: "phone", document.text)
        try ask("listClients", "GET", app + "/clients?attribute=account:1")
    }

    private func operators() throws {
        try ask("postReload", "POST", app + "/reloads", #"{"client": "pad"}"#)
        try settle()
        try ask("explainClient", "GET", app + "/clients/pad/explain")
        try ask("listEvents", "GET", app + "/events")
        try ask("postToken", "POST", app + "/tokens", #"{"sub": "phone"}"#) { _ in nil }
        try ask("compareConfiguration", "POST", "/v1/configuration/diff") { _ in nil }
        try ask("reloadConfiguration", "POST", "/v1/configuration/reload") { _ in nil }
    }

    private func ports() throws {
        try ask("getKeys", "GET", "/.well-known/jwks.json") {
            .integer(Int64($0["keys"]?.arrayValue?.count ?? -1))
        }
        try ask("getOpenAPI", "GET", "/openapi.json") { _ in nil }
        try ask("getLiveness", "GET", "/livez", isAdmin: true)
        try ask("getReadiness", "GET", "/readyz", isAdmin: true)
        try ask("getVersion", "GET", "/version", isAdmin: true) { _ in nil }
        try ask("getMetrics", "GET", "/metrics", isAdmin: true) {
            .string(
                $0.text.split(separator: "\n")
                    .filter { $0.hasPrefix("timeline_gateway_clients") }.joined(separator: " "))
        }
        try ask("getOverview", "GET", "/api/overview", isAdmin: true) { $0["clients"] }
        try ask("getApps", "GET", "/api/apps", isAdmin: true)
        try ask("getSystem", "GET", "/api/system", isAdmin: true) { _ in nil }
    }

    private func removals() throws {
        try ask("deleteClient", "DELETE", app + "/clients/phone")
        try ask("eraseClients", "DELETE", app + "/clients?attribute=account:2")
        try ask("deleteApp", "DELETE", app)
    }
}
