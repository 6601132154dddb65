import Foundation
import GatewaySigning
import GatewayTestSupport
import Testing

@testable import GatewayEngine
@testable import GatewayOperations
@testable import GatewayServer

@Suite struct DataDirectoryInventoryTests {
    private typealias Ring = DataDirectoryInventory.Ring
    private let whole = Ring(hasManifest: true, keyFiles: 1)

    @Test func `a directory that nothing was served from is no loss`() {
        var inventory = DataDirectoryInventory()
        #expect(!inventory.showsEarlierUse && !inventory.lacksDatabase)
        // A first start that broke off leaves an empty database.
        inventory.hasDatabase = true
        #expect(!inventory.showsEarlierUse && !inventory.lacksDatabase)
    }

    @Test(arguments: KeyRingName.allCases) func `keys without a database show that it was lost`(
        name: KeyRingName
    ) {
        for ring in [whole, Ring(hasManifest: true), Ring(keyFiles: 1)] {
            var inventory = DataDirectoryInventory(rings: [name: ring])
            #expect(inventory.lacksDatabase)
            inventory.hasDatabase = true
            #expect(inventory.showsEarlierUse && !inventory.lacksDatabase)
        }
    }

    @Test func `a write-ahead log or a list of URLs without a database shows that it was lost`() {
        #expect(DataDirectoryInventory(hasWriteAheadLog: true).lacksDatabase)
        #expect(DataDirectoryInventory(hasIdentity: true).lacksDatabase)
    }

    @Test func `rings that were noted and are asked for have to be there`() {
        var inventory = DataDirectoryInventory(hasDatabase: true)
        func lost(
            _ noted: Set<KeyRingName>?, enabled: Set<KeyRingName> = Set(KeyRingName.allCases),
            hasEpochs: Bool = true
        ) -> [DataDirectoryLoss.Part] {
            inventory.lostRings(noted: noted, hasEpochs: hasEpochs, enabled: enabled)
        }
        #expect(
            lost([.notifications, .tokens])
                == [.ring(.notifications, keyFiles: 0), .ring(.tokens, keyFiles: 0)])
        #expect(
            lost([.notifications, .tokens], enabled: [.notifications])
                == [.ring(.notifications, keyFiles: 0)])
        // A database from before the note existed: a gateway that ever ran has keys.
        #expect(lost(nil) == [.ring(.notifications, keyFiles: 0)])
        #expect(lost(nil, hasEpochs: false) == [])
        inventory.rings = [.notifications: whole, .tokens: Ring(keyFiles: 2)]
        #expect(
            lost(Set(KeyRingName.allCases))
                == [.ring(.tokens, keyFiles: 2), .ring(.webhooks, keyFiles: 0)])
    }

    @Test func `the inventory of a directory is what its files are`() throws {
        let path = try temporaryDirectory()
        for name in ["certs", "keys", "issuer"] {
            try FileManager.default.createDirectory(
                atPath: path + "/" + name, withIntermediateDirectories: true)
        }
        let directory = DataDirectory(path)
        try Data("x".utf8).write(to: URL(fileURLWithPath: path + "/certs/ca.pem"))
        try Data().write(to: URL(fileURLWithPath: path + "/store.sqlite"))
        #expect(!directory.inventory.showsEarlierUse && !directory.inventory.hasDatabase)
        let ring = try KeyRingStore(directory: path + "/keys").open(
            timing: .init(signatureLifetime: 60), now: 0)
        #expect(directory.inventory.rings[.notifications] == whole)
        #expect(directory.inventory.lacksDatabase)
        try FileManager.default.removeItem(atPath: path + "/keys/ring.json")
        #expect(
            directory.inventory.rings[.notifications] == Ring(hasManifest: false, keyFiles: 1))
        let again = try KeyRingStore(directory: path + "/keys").open(
            timing: .init(signatureLifetime: 60), now: 0)
        #expect(again.signingKey == ring.signingKey)
    }
}

@Suite struct DataDirectoryURLTests {
    private static let timing = KeyRing.Timing(publishLead: 300, signatureLifetime: 3_600)

    @Test func `tokens are minted for the configured URL, whatever was served under before`() throws
    {
        let path = try GatewayProcess.temporaryDirectory()
        let data = DataDirectory(path)
        try data.create()
        func note(_ url: String, isConfigured: Bool) throws -> [String] {
            try data.note(url: url, isConfigured: isConfigured, timing: Self.timing)
        }
        #expect(try note("https://localhost:1", isConfigured: false).first == "https://localhost:1")
        // Another port changes nothing.
        #expect(try note("https://localhost:2", isConfigured: false).first == "https://localhost:1")
        #expect(
            try note("https://gateway.example", isConfigured: true)
                == ["https://gateway.example", "https://localhost:1", "https://localhost:2"])
        #expect(data.urls().first == "https://gateway.example")
        #expect(try note("https://localhost:2", isConfigured: false).count == 3)
    }

    @Test func `the directory's own URL and the latest stay when there are too many`() throws {
        let path = try GatewayProcess.temporaryDirectory()
        let data = DataDirectory(path)
        try data.create()
        for port in 1...40 {
            _ = try data.note(
                url: "https://localhost:\(port)", isConfigured: false, timing: Self.timing)
        }
        let urls = data.urls()
        #expect(urls.count == 16)
        #expect(urls.first == "https://localhost:1")
        #expect(urls.last == "https://localhost:40")
    }
}
