import ArgumentParser
import Foundation

/// A shape of attack, with the largest documents that the limits allow. Its raw value describes it
/// in a line of at most 64 characters.
enum AttackShape: String, CaseIterable, Sendable, ExpressibleByArgument {
    case patch = "patches of 256 KiB of misspelt unknown members"
    case tinyRecords = "stream readers that send records of one byte"
    case keyUpdates = "stream readers that keep requesting TLS key updates"
    case aliases = "catalogs of 1 MiB of YAML aliases, PUT and diff"
    case unknownEntities = "catalogs with 16,000 rules about unknown entities"
    case catalog = "catalogs with 32,000 rules, each replacing the previous one"
    case changeKeys = "changes that invalidate nearly 10,000 keys with long values"
    case batchKeys = "posts that invalidate 200,000 keys with 20 and with 1,000 events"
    case registrations = "registrations of 256 KiB on many connections"
    case refusedTokens = "tokens with invalid signatures, all different"
    case unknownKinds = "registrations with 400 unknown kinds beside 500 known ones"
    case emptyArrays = "posts of 8 MiB of empty arrays"
    case batch = "posts of 1,000 events of 8 KiB"
    case explain = "posts, a change and a client explained, 10,000 keys each"
    case diff = "diff of a catalog with 32,000 rules against the log"
    case lists = "clients, changes, attempts and events, 1,000 per page"
    case reads = "reads of the largest registration and catalog, and polls"
    case acknowledgements = "acknowledgements with 3,000 entries"
    case orders = "tokens, pushes, starts, reloads, configurations of maximum size"

    enum Load {
        /// Requests in turn, on so many connections.
        case requests([AttackRequest], connections: Int)
        /// Streams that these requests open, whose readers send too.
        case readers([[UInt8]], TalkingReaders.Talk)
    }

    /// The route that a reader's stream is for.
    static let streamRoute = Route("GET", clientPath + "/reloads")
    fileprivate static let appPath = "/v1/apps/{app}"
    fileprivate static let clientPath = appPath + "/clients/{client}"
    private static let (connections, manyConnections, readers) = (4, 16, 4)

    static var allValueStrings: [String] { allCases.map(\.name) }

    init?(argument: String) {
        guard let shape = Self.allCases.first(where: { $0.name == argument }) else { return nil }
        self = shape
    }

    /// The name on the command line.
    var name: String {
        "\(self)".map { $0.isUppercase ? "-" + $0.lowercased() : String($0) }.joined()
    }

    /// Name and description, for a list of all.
    var help: String {
        "  " + name + String(repeating: " ", count: max(1, 18 - name.count)) + rawValue
    }

    /// Makes what is sent, of the largest documents.
    func load(on stage: ComplexityStage) throws -> Load {
        switch self {
        case .tinyRecords, .keyUpdates:
            let requests = (0..<Self.readers).map { number in
                let client = ComplexityStage.client(number)
                return Request.bytes(
                    "GET", "/v1/apps/\(ComplexityStage.app)/clients/\(client)/reloads",
                    headers: Request.streamFields(token: stage.clientTokens[number]))
            }
            return .readers(requests, self == .tinyRecords ? .tinyRecords : .keyUpdates)
        case .registrations, .refusedTokens:
            return .requests(try requests(on: stage), connections: Self.manyConnections)
        default:
            return .requests(try requests(on: stage), connections: Self.connections)
        }
    }

    private func requests(on stage: ComplexityStage) throws -> [AttackRequest] {
        let (json, yaml) = ("application/json", "application/yaml")
        let (event, batch) = ("application/cloudevents+json", "application/cloudevents-batch+json")
        let attacker = Attacker(stage: stage, token: stage.token)
        let client = Attacker(stage: stage, token: stage.clientTokens[0], path: Self.clientPath)
        switch self {
        case .tinyRecords, .keyUpdates: return []
        case .patch:
            return ["26.1", "26.2"].map {
                client.sends(
                    "PATCH", reaching: [200], "application/merge-patch+json",
                    body: AttackDocuments.patch(osVersion: $0))
            }
        case .aliases:
            let body = AttackDocuments.aliases
            return [
                attacker.sends("PUT", "/catalog", reaching: [400], yaml, body: body),
                attacker.sends("POST", "/catalog/diff", reaching: [400], yaml, body: body),
            ]
        case .unknownEntities:
            let body = AttackDocuments.unknownEntities(app: ComplexityStage.app)
            return [
                attacker.sends("PUT", "/catalog", reaching: [422], yaml, body: body),
                attacker.sends("POST", "/catalog/diff", reaching: [422], yaml, body: body),
            ]
        case .catalog:
            let app = ComplexityStage.otherApp
            let other = Attacker(stage: stage, app: app, token: stage.otherToken)
            return ["First", "Second"].map {
                other.sends(
                    "PUT", "/catalog", reaching: [200], yaml,
                    body: AttackDocuments.mostRules(app: app, variant: $0))
            }
        case .changeKeys:
            return [AttackDocuments.wideChange, AttackDocuments.hotChange].map {
                attacker.sends("POST", "/changes", reaching: [202], event, body: $0)
            }
        case .batchKeys:
            return [AttackDocuments.hotBatch, AttackDocuments.warmBatch].map {
                attacker.sends("POST", "/changes", reaching: [202], batch, body: $0)
            }
        case .registrations, .unknownKinds:
            let body = AttackDocuments.registration(isUnknown: self == .unknownKinds)
            return [client.sends("PUT", reaching: [200], json, body: body)]
        case .refusedTokens:
            let forger = Attacker(stage: stage, token: try Self.forged(stage.token))
            return [forger.sends("GET", "/catalog", reaching: [401], count: 32)]
        case .emptyArrays:
            let body = AttackDocuments.emptyArrays
            return [attacker.sends("POST", "/changes", reaching: [413, 422], batch, body: body)]
        case .batch:
            let body = AttackDocuments.largeBatch
            return [attacker.sends("POST", "/changes", reaching: [202], batch, body: body)]
        case .explain:
            let (many, one) = (AttackDocuments.explainedBatch, AttackDocuments.wideChange)
            return [
                attacker.sends("POST", "/changes/explain", reaching: [200], batch, body: many),
                attacker.sends("POST", "/changes/explain", reaching: [200], event, body: one),
                attacker.sends("GET", "/changes/{sequence}/explain", reaching: [200]),
                attacker.sends("GET", "/clients/{client}/explain", reaching: [200]),
            ]
        case .diff:
            let catalog = AttackDocuments.catalog(app: ComplexityStage.app)
            let rules = AttackDocuments.mostRules(app: ComplexityStage.app, variant: "Third")
            return [
                attacker.sends("POST", "/catalog/diff", reaching: [200], json, body: catalog),
                attacker.sends("POST", "/catalog/diff", reaching: [200], yaml, body: rules),
            ]
        case .lists:
            return [
                attacker.sends("GET", "/clients", reaching: [200], query: "limit=1000"),
                attacker.sends("GET", "/changes", reaching: [200], query: "limit=1000"),
                attacker.sends("GET", "/attempts", reaching: [200], query: "limit=1000"),
                attacker.sends("GET", "/events", reaching: [200]),
                attacker.sends("DELETE", "/clients", reaching: [200], query: "attribute=a:b"),
            ]
        case .reads:
            return [
                client.sends("GET", reaching: [200]),
                attacker.sends("GET", "/catalog", reaching: [200]),
                client.sends(
                    "GET", "/reloads", reaching: [200], query: AttackDocuments.kindsQuery),
            ]
        case .acknowledgements:
            let body = AttackDocuments.acknowledgement(cursor: stage.cursor)
            return [client.sends("POST", "/acks", reaching: [204], json, body: body)]
        case .orders:
            let all = Attacker(stage: stage, token: stage.operatorToken, path: "/v1/configuration")
            let (token, push) = (AttackDocuments.tokenOrder, AttackDocuments.pushOrder)
            let (start, reload) = (AttackDocuments.startOrder, AttackDocuments.reloadOrder)
            let configuration = AttackDocuments.configuration
            return [
                attacker.sends("POST", "/tokens", reaching: [422], json, body: token),
                attacker.sends(
                    "POST", "/clients/{client}/pushes", reaching: [202, 422], json, body: push),
                attacker.sends("POST", "/activities", reaching: [422], json, body: start),
                attacker.sends("POST", "/reloads", reaching: [202, 422], json, body: reload),
                all.sends("POST", "/diff", reaching: [422], json, body: configuration),
                all.sends("POST", "/diff", reaching: [422], yaml, body: AttackDocuments.aliases),
            ]
        }
    }

    /// A token whose signature is another one each time it is sent, and never right.
    private static func forged(_ token: String) throws -> String {
        let mark = AttackRequest.numberMark
        guard let dot = token.lastIndex(of: "."),
            let start = token.index(dot, offsetBy: 8, limitedBy: token.endIndex),
            let end = token.index(start, offsetBy: mark.count, limitedBy: token.endIndex)
        else { throw BenchFailure("a token has no signature to change") }
        return token.replacingCharacters(in: start..<end, with: mark)
    }
}

/// Makes the requests with one token.
private struct Attacker {
    let stage: ComplexityStage
    var app = ComplexityStage.app
    let token: String
    /// What the paths begin with.
    var path = AttackShape.appPath

    /// Makes a request; the names in its path are those of the app, its first client and the change
    /// of the set-up.
    func sends(
        _ method: String, _ rest: String = "", reaching: Set<Int>, _ type: String? = nil,
        body: [UInt8]? = nil, query: String? = nil, count: Int = 1
    ) -> AttackRequest {
        let route = Route(method, path + rest)
        let target = route.path.replacingOccurrences(of: "{app}", with: app)
            .replacingOccurrences(of: "{client}", with: ComplexityStage.client(0))
            .replacingOccurrences(of: "{sequence}", with: String(stage.sequence))
        let bytes = Request.bytes(
            method, query.map { target + "?" + $0 } ?? target, token: token, type: type, body: body)
        return AttackRequest(route, reaching: reaching, bytes: bytes, count: count)
    }
}
