import WidgetModel

extension Limits {
    /// Limits for a registration that the app keeps: it stated it itself, so nothing that the
    /// gateway would refuse is a reason to forget it.
    static var archive: Limits {
        var limits = Limits()
        limits.registrationWidgetsMax = 10_000
        limits.recommendationItemsMax = 10_000
        limits.attributesMax = 10_000
        limits.listValuesMax = 10_000
        limits.stringBytesMax = 64 * 1024
        return limits
    }
}
