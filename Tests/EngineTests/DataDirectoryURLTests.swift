import GatewaySigning
import GatewayTestSupport
import Testing

@testable import GatewayEngine
@testable import GatewayOperations

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
