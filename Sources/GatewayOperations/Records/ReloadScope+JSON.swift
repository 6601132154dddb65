import GatewayCore
import WidgetModel

/// An operator's reload as requested and stored: `{"all": true}`, `{"kind": "…"}` or
/// `{"client": "…"}`.
extension ReloadScope {
    /// Returns `nil` for anything else; further members are ignored.
    package init?(_ document: JSONValue) {
        let object = document.objectValue
        switch (object?["all"], object?["kind"], object?["client"]) {
        case (.bool(true), nil, nil): self = .everything
        case (nil, .string(let kind), nil): self = .kind(kind)
        case (nil, nil, .string(let client)): self = .client(client)
        default: return nil
        }
    }

    /// The document that ``init(_:)`` reads.
    package var json: JSONValue {
        switch self {
        case .everything: ["all": true]
        case .kind(let kind): ["kind": .string(kind)]
        case .client(let client): ["client": .string(client)]
        }
    }
}
