import Foundation

/// One shape, ready to be sent.
struct AttackShape {
    /// What is sent.
    enum Load {
        /// Requests in turn, on so many connections.
        case requests([AttackRequest], connections: Int)
        /// Streams that these requests open, whose readers talk.
        case readers([[UInt8]], TalkingReaders.Talk)
    }

    /// The route that a reader's stream is for.
    static let streamRoute = Route("GET", clientPath + "/reloads")
    private static let appPath = "/v1/apps/{app}"
    private static let clientPath = appPath + "/clients/{client}"
    private static let (connections, manyConnections, readers) = (4, 16, 4)

    /// What it is.
    let name: ShapeName
    /// What is sent.
    let load: Load

    /// Makes the documents of a shape.
    init(_ name: ShapeName, on stage: ComplexityStage) throws {
        self.name = name
        switch name {
        case .tinyRecords, .keyUpdates:
            let requests = (0..<Self.readers).map { number in
                let client = ComplexityStage.client(number)
                return Request.stream(
                    "/v1/apps/\(ComplexityStage.app)/clients/\(client)/reloads",
                    token: stage.clientTokens[number], isHTTP2: false)
            }
            load = .readers(requests, name == .tinyRecords ? .tinyRecords : .keyUpdates)
        case .registrations, .refusedTokens:
            load = .requests(
                try Self.requests(name, stage), connections: Self.manyConnections)
        default:
            load = .requests(try Self.requests(name, stage), connections: Self.connections)
        }
    }

    private static let (json, yaml) = ("application/json", "application/yaml")
    private static let (event, batch) = (
        "application/cloudevents+json", "application/cloudevents-batch+json"
    )

    private static func requests(
        _ name: ShapeName, _ stage: ComplexityStage
    ) throws -> [AttackRequest] {
        let maker = Maker(
            app: ComplexityStage.app, token: stage.token, clientToken: stage.clientTokens[0],
            sequence: stage.sequence)
        let other = Maker(
            app: ComplexityStage.otherApp, token: stage.otherToken,
            clientToken: stage.clientTokens[0],
            sequence: stage.sequence)
        switch name {
        case .tinyRecords, .keyUpdates: return []
        case .patch:
            return ["26.1", "26.2"].map {
                maker.own(
                    "PATCH", clientPath, [200], "application/merge-patch+json",
                    AttackDocuments.patch(osVersion: $0))
            }
        case .aliases:
            let body = AttackDocuments.aliases
            return [
                maker.make("PUT", appPath + "/catalog", [400], yaml, body),
                maker.make("POST", appPath + "/catalog/diff", [400], yaml, body),
            ]
        case .unknownEntities:
            let body = AttackDocuments.unknownEntities(app: ComplexityStage.app)
            return [
                maker.make("PUT", appPath + "/catalog", [422], yaml, body),
                maker.make("POST", appPath + "/catalog/diff", [422], yaml, body),
            ]
        case .catalog:
            return ["First", "Second"].map { variant in
                other.make(
                    "PUT", appPath + "/catalog", [200], yaml,
                    AttackDocuments.mostRules(app: ComplexityStage.otherApp, variant: variant))
            }
        case .changeKeys:
            return [AttackDocuments.wideChange, AttackDocuments.hotChange].map {
                maker.make("POST", appPath + "/changes", [202], event, $0)
            }
        case .batchKeys:
            return [AttackDocuments.hotBatch, AttackDocuments.warmBatch].map {
                maker.make("POST", appPath + "/changes", [202], batch, $0)
            }
        case .registrations:
            return [maker.own("PUT", clientPath, [200], json, AttackDocuments.registration())]
        case .refusedTokens:
            let request = maker.bytes(
                "GET", appPath + "/catalog", token: try forged(stage.token), nil, nil)
            let route = Route("GET", appPath + "/catalog")
            return [AttackRequest(route, reaching: [401], bytes: request, count: 32)]
        case .unknownKinds:
            return [
                maker.own(
                    "PUT", clientPath, [200], json, AttackDocuments.registration(isUnknown: true))
            ]
        case .emptyArrays:
            return [
                maker.make(
                    "POST", appPath + "/changes", [413, 422], batch, AttackDocuments.emptyArrays)
            ]
        case .batch:
            return [
                maker.make("POST", appPath + "/changes", [202], batch, AttackDocuments.largeBatch)
            ]
        case .explain:
            let path = appPath + "/changes/explain"
            return [
                maker.make("POST", path, [200], batch, AttackDocuments.explainedBatch),
                maker.make("POST", path, [200], event, AttackDocuments.wideChange),
                maker.make("GET", appPath + "/changes/{sequence}/explain", [200]),
                maker.make("GET", clientPath + "/explain", [200]),
            ]
        case .diff:
            let catalog = AttackDocuments.catalog(app: ComplexityStage.app)
            let rules = AttackDocuments.mostRules(app: ComplexityStage.app, variant: "Third")
            return [
                maker.make("POST", appPath + "/catalog/diff", [200], json, catalog),
                maker.make("POST", appPath + "/catalog/diff", [200], yaml, rules),
            ]
        case .lists:
            return [
                maker.make("GET", appPath + "/clients", [200], query: "limit=1000"),
                maker.make("GET", appPath + "/changes", [200], query: "limit=1000"),
                maker.make("GET", appPath + "/attempts", [200], query: "limit=1000"),
                maker.make("GET", appPath + "/events", [200]),
                maker.make("DELETE", appPath + "/clients", [200], query: "attribute=a:b"),
            ]
        case .reads:
            return [
                maker.own("GET", clientPath, [200]), maker.make("GET", appPath + "/catalog", [200]),
                maker.own(
                    "GET", clientPath + "/reloads", [200], query: AttackDocuments.kindsQuery),
            ]
        case .acknowledgements:
            return [
                maker.own(
                    "POST", clientPath + "/acks", [204], json,
                    AttackDocuments.acknowledgement(cursor: stage.cursor))
            ]
        case .orders:
            let all = Maker(
                app: ComplexityStage.app, token: stage.operatorToken, clientToken: stage.token,
                sequence: stage.sequence)
            return [
                maker.make("POST", appPath + "/tokens", [422], json, AttackDocuments.tokenOrder),
                maker.make(
                    "POST", clientPath + "/pushes", [202, 422], json, AttackDocuments.pushOrder),
                maker.make(
                    "POST", appPath + "/reloads", [202, 422], json, AttackDocuments.reloadOrder),
                all.make(
                    "POST", "/v1/configuration/diff", [422], json, AttackDocuments.configuration),
                all.make("POST", "/v1/configuration/diff", [422], yaml, AttackDocuments.aliases),
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

    /// Makes the requests of one app.
    private struct Maker {
        let app: String
        let token: String
        let clientToken: String
        let sequence: Int64

        /// A request with the backend's token.
        func make(
            _ method: String, _ path: String, _ reaching: Set<Int>, _ type: String? = nil,
            _ body: [UInt8]? = nil, query: String? = nil
        ) -> AttackRequest {
            AttackRequest(
                Route(method, path), reaching: reaching,
                bytes: bytes(method, path, token: token, type, body, query: query))
        }

        /// A request with the client's own token.
        func own(
            _ method: String, _ path: String, _ reaching: Set<Int>, _ type: String? = nil,
            _ body: [UInt8]? = nil, query: String? = nil
        ) -> AttackRequest {
            AttackRequest(
                Route(method, path), reaching: reaching,
                bytes: bytes(method, path, token: clientToken, type, body, query: query))
        }

        /// The bytes of a request; the names in its path are those of the app, its first client and
        /// the change of the set-up.
        func bytes(
            _ method: String, _ path: String, token: String, _ type: String?, _ body: [UInt8]?,
            query: String? = nil
        ) -> [UInt8] {
            let target = path.replacingOccurrences(of: "{app}", with: app)
                .replacingOccurrences(of: "{client}", with: ComplexityStage.client(0))
                .replacingOccurrences(of: "{sequence}", with: String(sequence))
            return Request.bytes(
                method, query.map { target + "?" + $0 } ?? target, token: token, type: type,
                body: body)
        }
    }
}
