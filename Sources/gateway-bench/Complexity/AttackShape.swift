import Foundation

/// One shape, ready to be sent.
struct AttackShape {
    enum Load {
        /// Requests in turn, on so many connections.
        case requests([AttackRequest], connections: Int)
        /// Streams that these requests open, whose readers send too.
        case readers([[UInt8]], TalkingReaders.Talk)
    }

    /// The route that a reader's stream is for.
    static let streamRoute = Route("GET", clientPath + "/reloads")
    private static let appPath = "/v1/apps/{app}"
    private static let clientPath = appPath + "/clients/{client}"
    private static let (connections, manyConnections, readers) = (4, 16, 4)

    let name: ShapeName
    let load: Load

    init(_ name: ShapeName, on stage: ComplexityStage) throws {
        self.name = name
        switch name {
        case .tinyRecords, .keyUpdates:
            let requests = (0..<Self.readers).map { number in
                let client = ComplexityStage.client(number)
                return Request.bytes(
                    "GET", "/v1/apps/\(ComplexityStage.app)/clients/\(client)/reloads",
                    headers: Request.streamFields(token: stage.clientTokens[number]))
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
            clientToken: stage.clientTokens[0], sequence: stage.sequence)
        switch name {
        case .tinyRecords, .keyUpdates: return []
        case .patch:
            return ["26.1", "26.2"].map {
                maker.client(
                    "PATCH", clientPath, reaching: [200], type: "application/merge-patch+json",
                    body: AttackDocuments.patch(osVersion: $0))
            }
        case .aliases:
            let body = AttackDocuments.aliases
            return [
                maker.make("PUT", appPath + "/catalog", reaching: [400], type: yaml, body: body),
                maker.make(
                    "POST", appPath + "/catalog/diff", reaching: [400], type: yaml, body: body),
            ]
        case .unknownEntities:
            let body = AttackDocuments.unknownEntities(app: ComplexityStage.app)
            return [
                maker.make("PUT", appPath + "/catalog", reaching: [422], type: yaml, body: body),
                maker.make(
                    "POST", appPath + "/catalog/diff", reaching: [422], type: yaml, body: body),
            ]
        case .catalog:
            return ["First", "Second"].map { variant in
                other.make(
                    "PUT", appPath + "/catalog", reaching: [200], type: yaml,
                    body: AttackDocuments.mostRules(app: ComplexityStage.otherApp, variant: variant)
                )
            }
        case .changeKeys:
            return [AttackDocuments.wideChange, AttackDocuments.hotChange].map {
                maker.make("POST", appPath + "/changes", reaching: [202], type: event, body: $0)
            }
        case .batchKeys:
            return [AttackDocuments.hotBatch, AttackDocuments.warmBatch].map {
                maker.make("POST", appPath + "/changes", reaching: [202], type: batch, body: $0)
            }
        case .registrations:
            return [
                maker.client(
                    "PUT", clientPath, reaching: [200], type: json,
                    body: AttackDocuments.registration())
            ]
        case .refusedTokens:
            let forger = Maker(
                app: maker.app, token: try forged(stage.token), clientToken: "", sequence: 0)
            return [forger.make("GET", appPath + "/catalog", reaching: [401], count: 32)]
        case .unknownKinds:
            return [
                maker.client(
                    "PUT", clientPath, reaching: [200], type: json,
                    body: AttackDocuments.registration(isUnknown: true))
            ]
        case .emptyArrays:
            return [
                maker.make(
                    "POST", appPath + "/changes", reaching: [413, 422], type: batch,
                    body: AttackDocuments.emptyArrays)
            ]
        case .batch:
            return [
                maker.make(
                    "POST", appPath + "/changes", reaching: [202], type: batch,
                    body: AttackDocuments.largeBatch)
            ]
        case .explain:
            let path = appPath + "/changes/explain"
            return [
                maker.make(
                    "POST", path, reaching: [200], type: batch, body: AttackDocuments.explainedBatch
                ),
                maker.make(
                    "POST", path, reaching: [200], type: event, body: AttackDocuments.wideChange),
                maker.make("GET", appPath + "/changes/{sequence}/explain", reaching: [200]),
                maker.make("GET", clientPath + "/explain", reaching: [200]),
            ]
        case .diff:
            let catalog = AttackDocuments.catalog(app: ComplexityStage.app)
            let rules = AttackDocuments.mostRules(app: ComplexityStage.app, variant: "Third")
            return [
                maker.make(
                    "POST", appPath + "/catalog/diff", reaching: [200], type: json, body: catalog),
                maker.make(
                    "POST", appPath + "/catalog/diff", reaching: [200], type: yaml, body: rules),
            ]
        case .lists:
            return [
                maker.make("GET", appPath + "/clients", reaching: [200], query: "limit=1000"),
                maker.make("GET", appPath + "/changes", reaching: [200], query: "limit=1000"),
                maker.make("GET", appPath + "/attempts", reaching: [200], query: "limit=1000"),
                maker.make("GET", appPath + "/events", reaching: [200]),
                maker.make("DELETE", appPath + "/clients", reaching: [200], query: "attribute=a:b"),
            ]
        case .reads:
            return [
                maker.client("GET", clientPath, reaching: [200]),
                maker.make("GET", appPath + "/catalog", reaching: [200]),
                maker.client(
                    "GET", clientPath + "/reloads", reaching: [200],
                    query: AttackDocuments.kindsQuery),
            ]
        case .acknowledgements:
            return [
                maker.client(
                    "POST", clientPath + "/acks", reaching: [204], type: json,
                    body: AttackDocuments.acknowledgement(cursor: stage.cursor))
            ]
        case .orders:
            let all = Maker(
                app: ComplexityStage.app, token: stage.operatorToken, clientToken: stage.token,
                sequence: stage.sequence)
            return [
                maker.make(
                    "POST", appPath + "/tokens", reaching: [422], type: json,
                    body: AttackDocuments.tokenOrder),
                maker.make(
                    "POST", clientPath + "/pushes", reaching: [202, 422], type: json,
                    body: AttackDocuments.pushOrder),
                maker.make(
                    "POST", appPath + "/activities", reaching: [422], type: json,
                    body: AttackDocuments.startOrder),
                maker.make(
                    "POST", appPath + "/reloads", reaching: [202, 422], type: json,
                    body: AttackDocuments.reloadOrder),
                all.make(
                    "POST", "/v1/configuration/diff", reaching: [422], type: json,
                    body: AttackDocuments.configuration),
                all.make(
                    "POST", "/v1/configuration/diff", reaching: [422], type: yaml,
                    body: AttackDocuments.aliases),
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
        var token: String
        let clientToken: String
        let sequence: Int64

        /// Makes a request with the client's own token.
        func client(
            _ method: String, _ path: String, reaching: Set<Int>, type: String? = nil,
            body: [UInt8]? = nil, query: String? = nil
        ) -> AttackRequest {
            var maker = self
            maker.token = clientToken
            return maker.make(
                method, path, reaching: reaching, type: type, body: body, query: query)
        }

        /// Makes a request with the backend's token; the names in its path are those of the app, its
        /// first client and the change of the set-up.
        func make(
            _ method: String, _ path: String, reaching: Set<Int>, type: String? = nil,
            body: [UInt8]? = nil, query: String? = nil, count: Int = 1
        ) -> AttackRequest {
            let target = path.replacingOccurrences(of: "{app}", with: app)
                .replacingOccurrences(of: "{client}", with: ComplexityStage.client(0))
                .replacingOccurrences(of: "{sequence}", with: String(sequence))
            let bytes = Request.bytes(
                method, query.map { target + "?" + $0 } ?? target, token: token, type: type,
                body: body)
            return AttackRequest(
                Route(method, path), reaching: reaching, bytes: bytes, count: count)
        }
    }
}
