import WidgetModel

/// What push handlers know, each in a file of its own, for the app to register with the rest.
extension ClientArchive {
    private var pushPath: String { directory + "/push.json" }
    private var controlsPath: String { directory + "/controls.json" }

    /// A registration has one; that of a part says nothing.
    private static var platform: String { "any" }

    /// Replaces the addresses that a push handler knows.
    package func save(push addresses: [DeliveryAddress]) throws(Failure) {
        try save(ClientRegistration(platform: Self.platform, delivery: addresses), pushPath)
    }

    /// Replaces the controls.
    package func save(controls: [PlacedControl]) throws(Failure) {
        try save(
            ClientRegistration(platform: Self.platform, controls: controls, delivery: []),
            controlsPath)
    }

    /// A registration with what push handlers know.
    func completed(_ registration: ClientRegistration) -> ClientRegistration {
        var registration = registration
        registration.delivery += part(pushPath)?.delivery ?? []
        registration.controls += part(controlsPath)?.controls ?? []
        return registration
    }

    private func save(_ part: ClientRegistration, _ path: String) throws(Failure) {
        try replace(path, with: part.json(maskingTokens: false).serialized)
    }

    private func part(_ path: String) -> ClientRegistration? {
        document(path).flatMap { try? ClientRegistration.read($0, limits: .archive).registration }
    }
}
