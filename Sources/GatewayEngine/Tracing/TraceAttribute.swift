/// Names of what spans say. Nothing of a person is among them: no client, no value of a parameter or
/// attribute, no token; and no path of a request, which has such in it.
package enum TraceAttribute {
    // OpenTelemetry's own.
    package static let method = "http.request.method"
    package static let route = "http.route"
    package static let status = "http.response.status_code"
    package static let errorType = "error.type"

    // The gateway's.
    /// The app.
    static let app = "timeline_gateway.app"
    /// The entity that changed; absent where there are several.
    static let entity = "timeline_gateway.entity"
    /// Sequence of the change, or of the last of several.
    static let sequence = "timeline_gateway.sequence"
    /// How many changes.
    static let changes = "timeline_gateway.changes"
    /// How many rules they hit.
    static let rules = "timeline_gateway.rules"
    /// The kinds whose rules they hit, or that are to be reloaded.
    static let kinds = "timeline_gateway.kinds"
    /// How many keys they raise.
    static let keys = "timeline_gateway.keys"
    /// How many of them hit no rule.
    static let unmatched = "timeline_gateway.unmatched"
    /// How many of them hit one for lack of an attribute.
    static let broad = "timeline_gateway.broad"
    /// How devices were told: `stream`, `webhook`, or the type of a push.
    static let channel = "timeline_gateway.channel"
    /// How many notifications were written.
    static let deliveries = "timeline_gateway.deliveries"
    /// Whether they waited for a window's end.
    static let isCollapsed = "timeline_gateway.collapsed"
    /// What came of a push, as in the metrics.
    static let outcome = "timeline_gateway.outcome"
    /// Why, as in the metrics.
    static let reason = "timeline_gateway.reason"
}
