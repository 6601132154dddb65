import GatewayCore
import GatewayOperations
import GatewaySigning
import GatewayTLS
import Testing
import WidgetModel

@Suite struct ConfigurationTests {
    /// The lines that every configuration needs.
    private static let base = """
        data: d
        tls: { certificate: c, key: k }
        localIssuer: true

        """

    private func read(
        _ text: String, flags: [String: String] = [:], environment: [String: String] = [:],
        checksFiles: Bool = false
    ) throws -> GatewayConfiguration {
        try GatewayConfiguration(
            ConfigurationLayers(
                file: temporaryFile(text), flags: flags, environment: environment),
            checksFiles: checksFiles)
    }

    func faults(
        _ text: String, flags: [String: String] = [:], environment: [String: String] = [:]
    ) throws -> [String: String] {
        let file = try temporaryFile(text)
        do throws(Faults) {
            _ = try GatewayConfiguration(
                ConfigurationLayers(file: file, flags: flags, environment: environment))
            return [:]
        } catch {
            return Dictionary(
                error.list.map { ($0.place, $0.message) }, uniquingKeysWith: { first, _ in first })
        }
    }

    @Test func oneAddressHasATenthOfTheConnectionsAndAtLeastAThousand() throws {
        func perAddress(_ limits: String) throws -> Int? {
            try read(Self.base + "limits: { \(limits) }").connectionsPerAddressMax
        }
        #expect(try perAddress("connections: 100000") == 10_000)
        #expect(try perAddress("connections: 5000") == 1_000)
        #expect(try perAddress("connectionsPerAddress: 7") == 7)
        let loopback = Address(host: "127.0.0.1", port: 0)
        let development = try GatewayConfiguration.development(
            data: "/tmp/data", listen: loopback, admin: loopback)
        #expect(development.connectionsPerAddressMax == nil, "benchmarks come from one address")
    }

    @Test func `origins of pages are as browsers send them`() throws {
        let origins = ["https://www.example.com", "http://localhost:8080", "capacitor://localhost"]
        let text = "cors: { origins: [\"\(origins.joined(separator: "\", \""))\"] }"
        #expect(try read(Self.base + text).corsOrigins == origins)
        for wrong in [
            "*", "null", "www.example.com", "https://www.example.com/", "https://WWW.example.com",
            "https://www.example.com:443", "http://localhost:80", "https://a@www.example.com",
            "https://*.example.com", "//www.example.com",
        ] {
            let faults = try faults(Self.base + "cors: { origins: \"\(wrong)\" }")
            #expect(faults["cors.origins"] != nil, "\(wrong)")
        }
    }

    @Test func `an app has one key of Web Push and one service account, or the fault is named`()
        throws
    {
        let web = "{ app: a, key: k, subject: \"mailto:a@b\" }"
        let android = "{ app: a, serviceAccount: f }"
        let push = try read(Self.base + "webPush: [\(web)]\nfcm: [\(android)]").push
        #expect(push.webPush.map(\.app) == ["a"] && push.fcm.map(\.file) == ["f"])
        #expect(push.terms.webPushApps == ["a"] && push.terms.fcmApps == ["a"] && push.isActive)
        let services = "push: { serviceRanges: [10.0.0.0/8], serviceCA: c }"
        let own = try read(Self.base + services).push
        #expect(own.serviceRanges == ["10.0.0.0/8"] && own.serviceTrust == "c")
        #expect(own.webhookRanges.isEmpty && own.webhookTrust == nil)
        let twice = "webPush: [\(web), \(web)]\nfcm: [\(android), \(android)]"
        #expect(
            try faults(Self.base + twice).keys.sorted() == ["fcm.1.app", "webPush.1.app"])
        for subject in ["a@b", "mailto:", "mailto:a@", "mailto:@a", "https:", "https:///a"] {
            let web = "webPush: [{ app: a, key: k, subject: \"\(subject)\" }]"
            #expect(
                try faults(Self.base + web + "\nfcm: [{ app: a }]").keys.sorted()
                    == ["fcm.0.serviceAccount", "webPush.0.subject"], "\(subject)")
        }
        let site = "webPush: [{ app: a, key: k, subject: \"https://example.com/contact\" }]"
        #expect(try faults(Self.base + site).isEmpty)
    }

    @Test func `proxies are trusted with their protocol, or not at all`() throws {
        func proxies(_ text: String) throws -> TrustedProxies? {
            try read(Self.base + text).proxies
        }
        #expect(try proxies("") == nil)
        let ranges = ["10.0.0.0/8", "::1"].compactMap { AddressRange($0) }
        for (name, proxyProtocol) in [
            ("proxyV2", ProxyProtocol.proxyV2), ("forwarded", .forwarded),
        ] {
            let text = "proxies: { trusted: [10.0.0.0/8, '::1'], protocol: \(name) }"
            #expect(try proxies(text) == TrustedProxies(ranges, by: proxyProtocol))
        }
        for (text, place) in [
            ("proxies: { trusted: [10.0.0.0/8] }", "proxies.protocol"),
            ("proxies: { protocol: forwarded }", "proxies.trusted"),
            ("proxies: { trusted: [10.0.0.1/8], protocol: proxyV2 }", "proxies.trusted"),
            ("proxies: { trusted: [lb.example], protocol: proxyV2 }", "proxies.trusted"),
            ("proxies: { trusted: [10.0.0.0/8], protocol: proxyV1 }", "proxies.protocol"),
        ] {
            #expect(try Set(faults(Self.base + text).keys) == [place], "\(text)")
        }
        #expect(
            try faults(Self.base, flags: ["tls.clientCRL": "x"]).keys
                .contains("tls.clientCRL"))
    }

    @Test func everyFaultIsListedAtOnce() throws {
        let faults = try faults(
            """
            listen: nowhere
            tls: { certificate: a.pem, clientCertificates: perhaps }
            retention: { age: soon, changes: 0 }
            localIssuer: maybe
            publicURL: http://gateway.example
            signing: { algorithm: RS256, lifetime: long }
            limits: { eventBytes: -1 }
            """)
        #expect(
            Set(faults.keys) == [
                "data", "listen", "tls.key", "tls.clientCertificates", "retention.age",
                "retention.changes", "localIssuer", "issuers", "publicURL", "signing.algorithm",
                "signing.lifetime", "limits.eventBytes",
            ])
    }

    @Test func `of pushes for Live Activities only the expiration is an option`() throws {
        func lines(_ option: String) -> String {
            Self.base + """
                apns:
                  - app: a
                    team: TEAM123456
                    keyID: KEY1234567
                    key: k
                    liveactivity: { \(option) }
                """
        }
        let configuration = try read(lines("expiration: 60"))
        let form = try #require(configuration.push.apps.first?.forms[.liveactivity])
        #expect(form.lifetime == 60 && form.priority == nil && form.collapseID == nil)
        for (option, name) in [("priority: 5", "priority"), ("collapseID: a", "collapseID")] {
            #expect(try Set(faults(lines(option)).keys) == ["apns.0.liveactivity.\(name)"])
        }
    }

    /// APNs would refuse every push with them, long after the start.
    @Test func `ids and topics that APNs refuses are faults`() throws {
        let found = try faults(
            """
            apns:
              - { app: a, team: TEAM123456, keyID: KEY1234567, key: k }
              - { app: b, team: T, keyID: key1234567, key: k }
              - { app: c.push-type.widgets, team: TEAM123456, keyID: KEY1234567, key: k }
              - { app: d, topic: d.push-type.controls, team: TEAM12345Ä, keyID: KEY1234567, key: k }
            """)
        let places = found.keys.filter { $0.hasPrefix("apns") }.sorted()
        #expect(
            places == [
                "apns.1.keyID", "apns.1.team", "apns.2.app", "apns.3.team", "apns.3.topic",
            ])
        #expect(found["apns.3.topic"]?.contains("bundle id alone") == true)
    }

    @Test func `variables of OpenTelemetry are heeded, or named without their values`() throws {
        let heeded = [
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:1",
            "OTEL_RESOURCE_ATTRIBUTES": "a=1,b=2", "OTEL_SERVICE_NAME": "s",
        ]
        let configuration = try read(Self.base, environment: heeded)
        #expect(configuration.notices.isEmpty)
        #expect(configuration.tracing?.attributes.map(\.name) == ["a", "b"])
        let disabled = try read(
            Self.base, environment: heeded.merging(["OTEL_SDK_DISABLED": "True"]) { $1 })
        #expect(disabled.tracing == nil && disabled.notices.isEmpty)
        let others = try read(
            Self.base,
            environment: [
                "OTEL_TRACES_SAMPLER": "always_off", "OTEL_EXPORTER_OTLP_HEADERS": "key=s3cr3t",
                "OTEL_PROPAGATORS": "b3", "PATH": "/bin",
            ])
        #expect(
            others.notices == [
                "OTEL_EXPORTER_OTLP_HEADERS has no effect; use the option `tracing.headers`",
                "OTEL_PROPAGATORS has no effect",
                "OTEL_TRACES_SAMPLER has no effect; use the option `tracing.share`",
            ])
    }

    @Test(arguments: ["31s", "1m", "0s", "soon"])
    func `a heartbeat that readers or proxies do not wait for is a fault`(text: String) throws {
        let faults = try faults("data: d\nstreams: { heartbeat: \(text) }")
        #expect(faults["streams.heartbeat"] != nil)
    }

    @Test func anUnknownKeyIsNamedWithItsNearestNeighbour() throws {
        let faults = try faults("lisen: 127.0.0.1:1\nretention: { chnges: 5 }")
        #expect(faults["lisen"]?.contains("did you mean `listen`?") == true)
        #expect(faults["retention.chnges"]?.contains("did you mean `retention.changes`?") == true)
    }

    @Test func anUnknownVariableOfTheGatewayIsAFaultAndTimelinectlsAreNot() throws {
        let faults = try faults(
            "data: d",
            environment: [
                "TIMELINE_GATEWAY_LISTN": "127.0.0.1:1", "TIMELINE_GATEWAY_URL": "https://x",
                "PATH": "/bin",
            ])
        #expect(faults["TIMELINE_GATEWAY_LISTN"]?.contains("TIMELINE_GATEWAY_LISTEN") == true)
        #expect(faults["TIMELINE_GATEWAY_URL"] == nil)
    }

    @Test func flagsOverrideTheEnvironmentAndThatTheFile() throws {
        let configuration = try read(
            Self.base + """
                listen: 127.0.0.1:1
                admin: 127.0.0.1:2
                streams: { stall: 9s, heartbeat: 30s }
                """, flags: ["listen": "127.0.0.1:3"],
            environment: [
                "TIMELINE_GATEWAY_LISTEN": "127.0.0.1:4",
                "TIMELINE_GATEWAY_ADMIN": "127.0.0.1:5",
                "TIMELINE_GATEWAY_RETENTION_CLIENT_DAYS": "7",
            ])
        #expect(configuration.data == "d")
        #expect(configuration.listen.port == 3)
        #expect(configuration.admin.port == 5)
        #expect(configuration.clientDays == 7)
        #expect(configuration.streams.stallMilliseconds == 9_000)
        #expect(configuration.streams.heartbeatSeconds == 30)
        #expect(configuration.streams.patienceMilliseconds == 39_000)
    }

    @Test func `a document that is not read has that one fault, with the file's name`() throws {
        for (text, reason) in [("a: [", "is not YAML"), ("", "is empty")] {
            let file = try temporaryFile(text)
            #expect {
                try GatewayConfiguration(
                    ConfigurationLayers(file: file, flags: [:], environment: [:]))
            } throws: { error in
                let faults = (error as? Faults)?.list ?? []
                return faults.count == 1
                    && faults[0].message.hasPrefix("the file \(file) \(reason)")
            }
        }
        for text in ["just text", "[1, 2]", "data: {", "\u{0}"] {
            #expect(try !faults(text).isEmpty, "\(text)")
        }
    }

    @Test func `values out of range are named with their range`() throws {
        let faults = try faults(
            """
            data: d
            tls: { certificate: c, key: k }
            localIssuer: maybe
            listen: 127.0.0.1:99999
            threads: 5000
            streams: { stall: soon }
            """)
        #expect(
            faults["listen"] == "`127.0.0.1:99999` must be HOST:PORT, with a port from 0 to 65535")
        #expect(faults["threads"] == "`5000` must be a whole number from 1 to 1024")
        #expect(faults["localIssuer"] == "`maybe` must be true or false")
        #expect(faults["streams.stall"]?.hasPrefix("`soon` must be a duration") == true)
    }

    @Test func `two ports cannot have one address`() throws {
        let faults = try faults(
            Self.base + "listen: 127.0.0.1:1\nadmin: 127.0.0.1:1\nprobes: 127.0.0.1:1")
        #expect(faults["admin"] == "127.0.0.1:1 is the address of `listen`, too")
        #expect(faults["probes"] == "127.0.0.1:1 is the address of `listen`, too")
    }

    @Test func `missing files and faults of the document are found together`() throws {
        let folder = try temporaryDirectory()
        let text = """
            data: \(folder)/file/data
            tls: { certificate: \(folder)/none.pem, key: \(folder)/none.key }
            localIssuer: true
            threads: 0
            """
        _ = try temporaryFile("", named: "file", in: folder)
        #expect {
            try read(text, checksFiles: true)
        } throws: { error in
            let places = (error as? Faults)?.list.map(\.place) ?? []
            return Set(places) == ["data", "tls.certificate", "threads"]
        }
    }

    @Test func `a certificate of another name or of the past is a fault`() throws {
        let folder = try temporaryDirectory()
        let made = try DevelopmentCertificates.ensure(in: folder, now: 1_000_000_000)
        let text = """
            data: \(folder)
            publicURL: https://gateway.example
            tls: { certificate: \(made.certificate), key: \(made.key) }
            localIssuer: true
            """
        #expect {
            try read(text, checksFiles: true)
        } throws: { error in
            let faults = (error as? Faults)?.list.filter { $0.place == "tls.certificate" } ?? []
            return faults.map { $0.message.prefix(11) } == ["has expired", "is not vali"]
        }
    }

    @Test func anIssuerNeedsEverythingAndKnownScopes() throws {
        let faults = try faults(
            """
            data: d
            tls: { certificate: c, key: k }
            issuers:
              - { iss: ci, apps: [com.mygame], scopes: [catalog:wite] }
              - { scopes: [client] }
              - { iss: cd, apps: [com.mygame], scopes: [client], keys: /nowhere }
            """)
        #expect(faults["issuers.0.scopes"]?.contains("did you mean catalog:write?") == true)
        #expect(faults["issuers.0.keys"] == "is required")
        #expect(faults["issuers.1.iss"] == "is required")
        #expect(faults["issuers.1.apps"] == "is required")
        #expect(faults["issuers.2.keys"] == "/nowhere cannot be read")
    }

    @Test func `denied tokens are read, each entry with an end or without`() throws {
        let configuration = try read(
            Self.base + """
                denied:
                  - { jti: a1 }
                  - { jti: 17, until: 2026-12-01T00:00:00Z }
                  - { app: com.mygame, sub: my-iphone, until: "2026-12-01T01:30:00.5+01:30" }
                  - { app: "*", sub: robot }
                """)
        let end: Int64 = 1_796_083_200
        #expect(
            configuration.denied
                == Denylist([
                    .init(.token(jti: "a1")), .init(.token(jti: "17"), until: end),
                    .init(.subject(app: "com.mygame", sub: "my-iphone"), until: end),
                    .init(.subject(app: "*", sub: "robot")),
                ]))
    }

    @Test func `an empty list of denied tokens is none`() throws {
        #expect(try faults(Self.base + "denied: []").isEmpty)
    }

    @Test func `what is wrong with an entry of denied tokens is told`() throws {
        let faults = try faults(
            Self.base + """
                denied:
                  - { until: 2026-12-01T00:00:00Z }
                  - { app: com.mygame }
                  - { jti: a1, sub: my-iphone }
                  - { jti: a1, until: tomorrow }
                  - { jti: "" }
                  - { app: "com my game", sub: x }
                  - { jti: a1, untl: 2026-12-01T00:00:00Z }
                  - { app: com.mygame, sub: \(String(repeating: "x", count: 257)) }
                """)
        for place in 0..<3 {
            #expect(faults["denied.\(place)"] == "must have either `jti`, or `app` and `sub`")
        }
        #expect(faults["denied.3.until"]?.contains("RFC 3339") == true)
        #expect(faults["denied.4.jti"] == "must be 1 to 256 bytes")
        #expect(faults["denied.5.app"]?.contains("must be an app") == true)
        #expect(faults["denied.6.untl"]?.contains("did you mean") == true)
        #expect(faults["denied.7.sub"] == "must be 1 to 256 bytes")
        #expect(faults.count == 8)
    }

    @Test func `the list of denied tokens is bounded`() throws {
        let entries = (0...Denylist.entriesMax).map { "  - { jti: \"\($0)\" }" }
        let faults = try faults(Self.base + "denied:\n" + entries.joined(separator: "\n"))
        #expect(faults["denied"]?.contains("at most \(Denylist.entriesMax)") == true)
        #expect(faults.count == 1)
    }

    @Test func `single kinds have intervals of their own`() throws {
        let terms = try read(
            Self.base + """
                push:
                  interval: 10m
                  intervals:
                    - { kind: score, interval: 90s }
                    - { kind: league, interval: 1h }
                """
        ).push.terms
        #expect(terms.interval == 600_000)
        #expect(terms.intervals == ["score": 90_000, "league": 3_600_000])
        let faults = try faults(
            Self.base + """
                push:
                  intervals:
                    - { kind: score, interval: 90s }
                    - { kind: score, interval: 5m }
                    - { kind: league }
                    - { interval: often }
                """)
        #expect(faults["push.intervals.1.kind"]?.contains("score") == true)
        #expect(faults["push.intervals.2.interval"] == "is required")
        #expect(faults["push.intervals.3.kind"] == "is required")
        #expect(faults["push.intervals.3.interval"]?.contains("duration") == true)
        #expect(faults.count == 4)
    }

    @Test func theDevelopmentModeStaysOnLoopback() throws {
        let layers = ConfigurationLayers(
            file: nil, flags: ["listen": "0.0.0.0:8443"], environment: [:])
        #expect(throws: Faults.self) {
            var layers = layers
            _ = try layers.development()
        }
        var right = ConfigurationLayers(
            file: nil, flags: ["listen": "[::1]:8443", "data": "d"], environment: [:])
        let configuration = try right.development()
        #expect(configuration.isDevelopment)
        #expect(configuration.listen == Address(host: "::1", port: 8443))
    }

    @Test(arguments: ["", "localhost", ":80", "h:", "h:65536", "h:-1", "h:x"])
    func whatIsNoAddressIsRefused(text: String) {
        #expect(Address(text) == nil)
    }
}
