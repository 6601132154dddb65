import WidgetModel

/// An app intent whose values the gateway knows: a `WidgetConfigurationIntent` or a
/// `ControlConfigurationIntent`.
///
/// The one description of the values serves the registration and the provider alike, because a
/// timeline is only recognized if both describe its widget in the same way.
public protocol GatewayIntent {
    /// The values by the names of the catalog. Optional parameters without a value are `unset`, or
    /// left out: both mean the same.
    var gatewayParameters: [String: ParameterValue] { get }
}

extension ConfiguredWidget {
    /// The same widget, placed once, without parameters that are unset.
    var normalized: ConfiguredWidget {
        ConfiguredWidget(
            kind: kind, family: family, parameters: parameters.filter { $0.value != .unset })
    }
}

extension [ConfiguredWidget] {
    /// The same widgets with each configuration listed once with its count, in the order of their
    /// first occurrence; a system lists widgets one by one.
    var counted: [ConfiguredWidget] {
        var places: [ConfiguredWidget: Int] = [:]
        var counted: [ConfiguredWidget] = []
        for widget in self {
            let single = widget.normalized
            if let place = places[single] {
                counted[place].count += widget.count
            } else {
                places[single] = counted.count
                counted.append(single)
                counted[counted.count - 1].count = widget.count
            }
        }
        return counted
    }
}

extension DeliveryAddress {
    package static func push(
        _ type: APNsPushType, token: some Collection<UInt8>, environment: String
    ) -> DeliveryAddress {
        let digits = token.map { byte in
            let text = String(byte, radix: 16)
            return byte < 16 ? "0" + text : text
        }
        return .apns(
            APNsAddress(
                pushType: type.rawValue, token: digits.joined(), environment: environment))
    }
}
