import CatalogModel
import GatewayTestSupport
import Testing
import WidgetModel

@testable import gateway_faults

/// The campaign's app as the gateway reads it.
@Suite struct GameTests {
    @Test(arguments: [0, 1])
    func theCatalogIsValid(variant: Int) throws {
        let catalog = try Catalog(
            JSONValue(yaml: Game.catalog(variant: variant)), app: Game.app, limits: Limits())
        #expect(catalog.widgets.count == 4 + variant)
    }

    @Test func aPlacementHoldsWhatItsDocumentSays() throws {
        var generator = SplitMix64(seed: 3)
        for isParty in [false, true] {
            let placement = Game.Placement.random(isParty: isParty, using: &generator)
            #expect(placement.interests.count == placement.characters.count + 2)
            let widgets = try #require(placement.document.objectValue?["widgets"]?.arrayValue)
            #expect(widgets.count == (isParty ? 3 : placement.characters.count + 2))
        }
    }

    @Test func aNotificationNamesWhatItMeans() {
        let notification = ReloadNotification(
            issuer: "", audience: "", issuedAt: 0, expires: 0, id: "", sequence: 7,
            reload: [
                .init(kind: "detail", parameters: [.init(name: "character", value: "panda")]),
                .init(kind: "party"), .init(kind: "status"), .init(kind: "pulse"),
                .init(kind: "extra"),
            ])
        #expect(
            Game.telling(notification, opened: 0).targets == [
                .interest(RecordBuilder.panda), .kind(.party), .kind(.status),
                .interest(Interest(kind: .pulse, subject: .pulse)), .foreign("extra"),
            ])
    }
}
