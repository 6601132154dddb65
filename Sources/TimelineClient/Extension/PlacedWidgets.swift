import WidgetModel

extension [ConfiguredWidget] {
    /// The same widgets with each configuration listed once with its count, in the order of their
    /// first occurrence. A registration has this form, whereas a system lists widgets one by one.
    public var counted: [ConfiguredWidget] {
        var places: [ConfiguredWidget: Int] = [:]
        var counted: [ConfiguredWidget] = []
        for widget in self {
            var single = widget
            single.count = 1
            if let place = places[single] {
                counted[place].count += widget.count
            } else {
                places[single] = counted.count
                counted.append(widget)
            }
        }
        return counted
    }
}

extension DeliveryAddress {
    /// Returns the address for a push token that a system gave an app for its widgets.
    ///
    /// - Parameter environment: `production`, or `sandbox` for builds signed for development.
    public static func widgetPush(
        token: some Collection<UInt8>, environment: String = "production"
    ) -> DeliveryAddress {
        let digits = token.map { byte in
            let text = String(byte, radix: 16)
            return byte < 16 ? "0" + text : text
        }
        return .apns(
            APNsAddress(
                pushType: "widgets", token: digits.joined(), environment: environment))
    }
}
