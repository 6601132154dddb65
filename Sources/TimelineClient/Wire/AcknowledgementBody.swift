import WidgetModel

/// What a client tells the gateway it has done, as the gateway reads it (design section 5, `acks`).
struct AcknowledgementBody {
    /// Everything up to here is applied.
    var cursor: Cursor?
    /// Timelines that were built.
    var rebuilt: [JSONValue] = []
    /// Timelines that could not be built.
    var failed: [JSONValue] = []
    /// Kinds whose recommendation set was looked at and is the registered one.
    var recommendations: [String] = []

    var json: JSONValue {
        var object: JSONObject = [:]
        if let cursor { object["cursor"] = .string(cursor.text) }
        object["rebuilt"] = .array(rebuilt)
        object["failed"] = .array(failed)
        object["recommendations"] = .array(recommendations.map { .string($0) })
        return .object(object)
    }

    /// A timeline, and what is said of it.
    static func timeline(
        _ kind: String, _ parameters: [String: ParameterValue], _ member: String,
        _ value: JSONValue
    ) -> JSONValue {
        var object: JSONObject = [
            "kind": .string(kind), "parameters": parametersObject(parameters),
        ]
        object[member] = value
        return .object(object)
    }
}

/// Parameter values as a JSON object, names sorted.
package func parametersObject(_ values: [String: ParameterValue]) -> JSONValue {
    var object = JSONObject()
    for (name, value) in values.sorted(by: { $0.key < $1.key }) { object[name] = value.json }
    return .object(object)
}
