import WidgetModel

/// The addresses and controls that push handlers report, each in a separate file, so that the app
/// registers them together with its own.
extension ClientArchive {
    private var pushPath: String { directory + "/push.json" }
    private var controlsPath: String { directory + "/controls.json" }

    /// A placeholder: a registration requires a platform, and the one of a partial registration is
    /// ignored.
    private static var platform: String { "any" }

    package func save(push addresses: [DeliveryAddress]) throws(Failure) {
        try save(ClientRegistration(platform: Self.platform, delivery: addresses), pushPath)
    }

    package func save(controls: [PlacedControl]) throws(Failure) {
        try save(
            ClientRegistration(platform: Self.platform, controls: controls, delivery: []),
            controlsPath)
    }

    /// Returns the registration with the addresses and controls that push handlers reported.
    func completed(_ registration: ClientRegistration) -> ClientRegistration {
        var registration = registration
        registration.delivery += part(pushPath)?.delivery ?? []
        registration.controls += placedControls
        return registration
    }

    var placedControls: [PlacedControl] { part(controlsPath)?.controls ?? [] }

    private func save(_ part: ClientRegistration, _ path: String) throws(Failure) {
        try replace(path, with: part.json(maskingTokens: false).serialized)
    }

    private func part(_ path: String) -> ClientRegistration? {
        document(path).flatMap { try? ClientRegistration.read($0, limits: .archive).registration }
    }
}
