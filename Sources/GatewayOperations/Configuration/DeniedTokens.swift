import GatewayDocuments
import GatewaySigning
import WidgetModel

extension Denylist {
    /// The maximum length of a name in an entry, in bytes: that of a token's claim.
    private static let nameBytesMax = Limits().stringBytesMax

    /// Reads `denied`; records all faults in it.
    init(_ layers: inout ConfigurationLayers) {
        let places = layers.places(of: "denied")
        guard places.count <= Self.entriesMax else {
            layers.fault(
                "denied",
                "has \(places.count) entries; at most \(Self.entriesMax) are allowed: remove "
                    + "those whose tokens have expired")
            self.init()
            return
        }
        self.init(places.compactMap { Self.entry("denied.\($0)", &layers) })
    }

    private static func entry(_ place: String, _ layers: inout ConfigurationLayers) -> Entry? {
        var until: Int64?
        if let text = layers.text("\(place).until") {
            until = seconds(ofTimestamp: text)
            if until == nil {
                layers.fault(
                    "\(place).until",
                    "must be an RFC 3339 date and time such as 2026-12-01T00:00:00Z")
            }
        }
        let names = ["jti", "app", "sub"].map { layers.text("\(place).\($0)") }
        for (name, text) in zip(["jti", "app", "sub"], names) {
            guard let text, text.isEmpty || text.utf8.count > nameBytesMax else { continue }
            layers.fault("\(place).\(name)", "must be 1 to \(nameBytesMax) bytes")
            return nil
        }
        switch (names[0], names[1], names[2]) {
        case (let jti?, nil, nil): return Entry(.token(jti: jti), until: until)
        case (nil, let app?, let sub?):
            guard app == VerifiedToken.everyApp || Identifier.isValid(app) else {
                layers.fault(
                    "\(place).app", "must be an app, or `*` for tokens that name every app")
                return nil
            }
            return Entry(.subject(app: app, sub: sub), until: until)
        default:
            layers.fault(place, "must have either `jti`, or `app` and `sub`")
            return nil
        }
    }
}
