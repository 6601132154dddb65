import Foundation
import WidgetModel

extension JSONValue {
    /// Creates the JSON form of a Live Activity's attributes or content that Apple's systems and
    /// backends have: that of `JSONEncoder`, here with sorted members.
    package init(codable value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        self = try JSONValue(parsing: [UInt8](encoder.encode(value)))
    }

    /// Returns the value that this is the JSON form of.
    package func decoded<Value: Decodable>(as type: Value.Type) throws -> Value {
        try JSONDecoder().decode(type, from: Data(serialized))
    }
}

extension RegisteredActivity {
    /// Creates an activity with those of its values that rules can compare: texts, numbers and
    /// flags, and lists of these. Leaves out values for which the gateway would refuse the
    /// registration.
    package init(
        type: String, id: String, of values: JSONValue, channel: String?, delivery: DeliveryAddress?
    ) {
        let isFit = channel?.isUnfit(limit: Limits().stringBytesMax) == nil
        self.init(
            type: type, id: id, attributes: values.objectValue?.comparable ?? [:],
            channel: isFit ? channel : nil, delivery: delivery)
    }
}
