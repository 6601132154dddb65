import Foundation
import GatewayTestSupport
import NIOHTTP1
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayOperations
@testable import GatewayServer
@testable import GatewayTelemetry

@Suite struct CollectorEndpointTests {
    @Test(arguments: [
        ("https://collector:4318", "https://collector:4318", "/v1/traces", false, false),
        ("https://collector/", "https://collector", "/v1/traces", false, false),
        ("HTTPS://a.b/otlp//", "https://a.b", "/otlp/v1/traces", false, false),
        ("http://127.0.0.1:4318/a/b", "http://127.0.0.1:4318", "/a/b/v1/traces", true, true),
        ("http://[::1]:1", "http://[::1]:1", "/v1/traces", true, true),
        ("http://[::1]", "http://[::1]", "/v1/traces", true, true),
        ("http://localhost", "http://localhost", "/v1/traces", true, true),
        ("http://collector:4318", "http://collector:4318", "/v1/traces", true, false),
    ])
    func `a base is read`(
        text: String, origin: String, target: String, isPlain: Bool, isLoopback: Bool
    ) throws {
        let endpoint = try #require(CollectorEndpoint(text))
        #expect(endpoint.origin == origin && endpoint.target == target)
        #expect(endpoint.isPlain == isPlain && endpoint.isLoopback == isLoopback)
    }

    @Test(arguments: [
        "", "collector:4318", "grpc://collector", "https:", "https://", "https:///path",
        "https://:4318", "https://host:", "https://host:0", "https://host:99999",
        "https://user:secret@host", "https://host/?key=secret", "https://host/#x",
        "https://host/a b", "https://hôte", "https://a:b:c", "https://[::1",
        "https://" + String(repeating: "a", count: 2_048),
    ])
    func `what is no base is none`(text: String) {
        #expect(CollectorEndpoint(text) == nil)
    }
}

@Suite struct TracingConfigurationTests {
    private func read(
        _ text: String, environment: [String: String] = [:]
    ) throws -> (TracingConfiguration?, [String: String]) {
        var layers = ConfigurationLayers(
            file: try temporaryFile(text), flags: [:], environment: environment)
        let tracing = TracingConfiguration(&layers)
        return (
            tracing,
            Dictionary(
                layers.faults.list.map { ($0.place, $0.message) },
                uniquingKeysWith: { first, _ in first })
        )
    }

    @Test func `without a collector nothing is traced`() throws {
        let (tracing, faults) = try read("tracing: { share: 0.5, timeout: 3s }")
        #expect(tracing == nil && faults.isEmpty)
    }

    @Test func `what is traced is read`() throws {
        let (tracing, faults) = try read(
            """
            tracing:
              endpoint: https://collector:4318
              share: 0.25
              timeout: 3s
              serviceName: games
              attributes: [a=b, c=d=e]
              headers: /file
              ca: /ca
            """)
        #expect(faults.isEmpty)
        let read = try #require(tracing)
        #expect(read.endpoint == CollectorEndpoint("https://collector:4318"))
        #expect(read.share == 0.25 && read.timeoutSeconds == 3 && read.service == "games")
        #expect(read.attributes.map { "\($0.name) \($0.value)" } == ["a b", "c d=e"])
        #expect(read.fieldsFile == "/file" && read.trust == "/ca")
    }

    @Test func `OpenTelemetry's variables say the same, and the gateway's own win`() throws {
        let common = [
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:1", "OTEL_SERVICE_NAME": "common",
        ]
        #expect(try read("{}", environment: common).0?.service == "common")
        let own = ["TIMELINE_GATEWAY_TRACING_SERVICE_NAME": "own"]
        let tracing = try read("{}", environment: common.merging(own) { $1 }).0
        #expect(tracing?.service == "own")
        #expect(tracing?.endpoint == CollectorEndpoint("http://localhost:1"))
    }

    @Test func `every fault is named`() throws {
        let (tracing, faults) = try read(
            "tracing: { endpoint: nowhere, share: 1.5, timeout: soon, attributes: [x] }")
        #expect(tracing == nil)
        #expect(
            Set(faults.keys) == [
                "tracing.endpoint", "tracing.share", "tracing.timeout", "tracing.attributes",
            ])
        let plain = try read("tracing: { endpoint: 'http://collector', headers: /file }").1
        #expect(plain["tracing.headers"]?.contains("https") == true)
        let loopback = try read("tracing: { endpoint: 'http://[::1]:4318', headers: /file }").1
        #expect(loopback.isEmpty)
    }

    @Test(arguments: [
        "secret-key", ": secret-key", "name:", "name: sec\u{1}ret-key", "na me: secret-key",
        "a: b\nA: secret-key", "Content-Type: secret-key", "user-agent: secret-key",
        String(repeating: "a: secret-key\n", count: 2_000),
    ])
    func `a file that holds no header fields is refused without a word of it`(text: String) throws {
        var tracing = TracingConfiguration(
            endpoint: try #require(CollectorEndpoint("https://collector")))
        tracing.fieldsFile = try temporaryFile(text)
        #expect {
            _ = try tracing.fields()
        } throws: { error in
            guard let faults = error as? Faults else { return false }
            return faults.list.map(\.place) == ["tracing.headers"]
                && !"\(faults)".contains("secret-key")
        }
    }

    @Test func `files that are missing are named at once`() throws {
        var tracing = TracingConfiguration(
            endpoint: try #require(CollectorEndpoint("https://collector")))
        tracing.fieldsFile = "/nowhere/headers"
        tracing.trust = "/nowhere/ca.pem"
        #expect {
            try tracing.checkFiles()
        } throws: {
            ($0 as? Faults)?.list.map(\.place) == ["tracing.headers", "tracing.ca"]
        }
    }
}

@Suite struct SequenceWindowTests {
    @Test func `it knows what a list of everything would, as long as that is recent`() {
        for seed in 0..<50 as Range<UInt64> {
            var random = SplitMix64(seed: seed)
            var window = SequenceWindow<Int>(rangesMax: 8)
            var (known, next): ([(ClosedRange<UInt64>, Int)], UInt64) = ([], 1)
            for element in 0..<40 {
                next += UInt64(random.below(3))
                let last = next + UInt64(random.below(4))
                window.note(element, of: next, through: last)
                known.append((next...last, element))
                // Ranges that do not follow the last one are ignored.
                window.note(-1, of: next, through: last + 1)
                window.note(-1, of: last + 2, through: last + 1)
                next = last + 1
                for sequence in 0...next + 3 {
                    let expected = known.suffix(8).first { $0.0.contains(sequence) }?.1
                    #expect(window[sequence] == expected)
                }
            }
        }
    }
}

@Suite struct TracedRouteTests {
    private func route(_ path: String) -> GatewayRoute {
        GatewayRoute(.GET, path) { _, _ in throw CancellationError() }
    }

    @Test(arguments: [
        ("/v1/apps/:app/changes", "/v1/apps/{app}/changes", true),
        (
            "/v1/apps/:app/changes/:sequence/explain", "/v1/apps/{app}/changes/{sequence}/explain",
            true
        ),
        ("/v1/configuration/reload", "/v1/configuration/reload", true),
        ("/v1/apps/:app/clients/:client/acks", "/v1/apps/{app}/clients/{client}/acks", false),
        ("/.well-known/jwks.json", "/.well-known/jwks.json", false),
    ])
    func `routes of backends and operators are traced`(
        path: String, template: String, isTraced: Bool
    ) {
        #expect(route(path).template == template)
        #expect(route(path).isTraced == isTraced)
    }
}
