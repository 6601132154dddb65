/// The attribute names of spans. None identifies a person: no client, no parameter or attribute
/// value, no token; and no request path, which may contain them.
package enum TraceAttribute {
    // Names defined by OpenTelemetry.
    package static let method = "http.request.method"
    package static let route = "http.route"
    package static let status = "http.response.status_code"
    package static let errorType = "error.type"

    // Names defined by the gateway.
    static let app = "timeline_gateway.app"
    /// The entity that changed; absent where there are several.
    static let entity = "timeline_gateway.entity"
    /// The sequence of the change, or of the last of several.
    static let sequence = "timeline_gateway.sequence"
    static let changes = "timeline_gateway.changes"
    /// The number of rules that the changes match.
    static let rules = "timeline_gateway.rules"
    /// The kinds whose rules the changes match, or that are to be reloaded.
    static let kinds = "timeline_gateway.kinds"
    /// The number of keys that the changes raise.
    static let keys = "timeline_gateway.keys"
    /// The number of changes that match no rule.
    static let unmatched = "timeline_gateway.unmatched"
    /// The number of changes that match a rule because an attribute is missing.
    static let broad = "timeline_gateway.broad"
    /// The channel that notified devices: `stream`, `webhook`, or a push type.
    static let channel = "timeline_gateway.channel"
    /// The number of notifications written.
    static let deliveries = "timeline_gateway.deliveries"
    /// Whether the notifications waited for the end of a window.
    static let isCollapsed = "timeline_gateway.collapsed"
    /// The outcome of a push, as in the metrics.
    static let outcome = "timeline_gateway.outcome"
    static let reason = "timeline_gateway.reason"
}
