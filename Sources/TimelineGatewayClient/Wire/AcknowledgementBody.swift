import WidgetModel

/// The body of a client's acknowledgement (the `acks` resource of the HTTP API).
package struct AcknowledgementBody {
    /// The cursor up to which every change is applied.
    var cursor: Cursor?
    /// The timelines that were built.
    var rebuilt: [JSONValue] = []
    /// The timelines that could not be built.
    var failed: [JSONValue] = []
    /// The kinds whose recommendation set was checked and is the registered one.
    var recommendations: [String] = []

    package init(
        cursor: Cursor? = nil, rebuilt: [JSONValue] = [], failed: [JSONValue] = [],
        recommendations: [String] = []
    ) {
        self.cursor = cursor
        self.rebuilt = rebuilt
        self.failed = failed
        self.recommendations = recommendations
    }

    package var json: JSONValue {
        var object: JSONObject = [:]
        if let cursor { object["cursor"] = .string(cursor.text) }
        object["rebuilt"] = .array(rebuilt)
        object["failed"] = .array(failed)
        object["recommendations"] = .array(recommendations.map { .string($0) })
        return .object(object)
    }

    /// Returns the entry of a timeline with one additional member, which says that the built
    /// timeline is equal to the one before if it is.
    package static func timeline(
        ofKind kind: String, _ parameters: [String: ParameterValue], _ member: String,
        _ value: JSONValue, isUnchanged: Bool = false
    ) -> JSONValue {
        var object: JSONObject = [
            "kind": .string(kind), "parameters": parametersObject(parameters),
        ]
        object[member] = value
        if isUnchanged { object["unchanged"] = .bool(true) }
        return .object(object)
    }
}
