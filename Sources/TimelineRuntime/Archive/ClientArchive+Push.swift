import WidgetModel
import WidgetViews

/// The addresses and controls that push handlers report, each in a separate file, so that the app
/// registers them together with its own; and the drawings of these controls.
extension ClientArchive {
    private var pushPath: String { directory + "/push.json" }
    private var controlsPath: String { directory + "/controls.json" }
    private var drawingsPath: String { directory + "/drawings.json" }

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

    /// The placed controls as they were drawn last, without those that never were.
    package var drawnControls: [(control: PlacedControl, node: WidgetNode)] {
        let drawings = document(drawingsPath)?.objectValue
        return placedControls.compactMap { control in
            guard let node = drawings?[control.id].flatMap({ WidgetNode($0) }) else { return nil }
            return (control: control, node: node)
        }
    }

    /// Replaces the drawings of controls, by their ids. Throws ``Failure``; those saved before then
    /// remain.
    func save(drawings: [String: WidgetNode]) throws(Failure) {
        var document = JSONObject()
        for (id, node) in drawings.sorted(by: { $0.key < $1.key }) { document[id] = node.json }
        try replace(drawingsPath, with: JSONValue.object(document).serialized)
    }

    private func save(_ part: ClientRegistration, _ path: String) throws(Failure) {
        try replace(path, with: part.json(maskingTokens: false).serialized)
    }

    private func part(_ path: String) -> ClientRegistration? {
        document(path).flatMap { try? ClientRegistration.read($0, limits: .archive).registration }
    }
}
