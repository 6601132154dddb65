import GatewayOperations
import WidgetModel

/// A backend's request for a token for one of its clients.
struct ClientTokenRequest: Sendable {
    let sub: String
    let ttl: Int64
    let attributes: [String: [String]]

    init(_ document: JSONValue, limits: Limits) throws {
        guard let object = document.objectValue else {
            throw Problem.wrong(Faults("", "must be an object, not \(document.shape)"))
        }
        var faults = Faults()
        let sub = object["sub"]?.stringValue ?? ""
        if !Identifier.isValid(sub) {
            faults.add("sub", "must be the client id: 1 to 128 characters of A-Z a-z 0-9 . _ ~ -")
        }
        let ttl: Int64? =
            switch object["ttl"] {
            case nil: 3600
            case .integer(let seconds): seconds
            case .string(let text): DurationText.seconds(text)
            default: nil
            }
        if let ttl, (1...LocalIssuer.clientTokenSecondsMax).contains(ttl) {
            self.ttl = ttl
        } else {
            faults.add("ttl", "must be seconds or a duration such as 1h, at most 30 days")
            self.ttl = 0
        }
        self.sub = sub
        attributes =
            object["attributes"].map {
                readAttributes($0, at: "attributes", limits: limits, &faults)
            } ?? [:]
        guard faults.isEmpty else { throw Problem.wrong(faults) }
    }
}
