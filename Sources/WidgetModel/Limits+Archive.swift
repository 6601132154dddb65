extension Limits {
    /// The limits for a registration in an archive. The app created it itself, so it must be
    /// readable even if the gateway would refuse it.
    package static var archive: Limits {
        var limits = Limits()
        limits.registrationWidgetsMax = 10_000
        limits.recommendationItemsMax = 10_000
        limits.attributesMax = 10_000
        limits.listValuesMax = 10_000
        limits.stringBytesMax = 64 * 1024
        return limits
    }
}
