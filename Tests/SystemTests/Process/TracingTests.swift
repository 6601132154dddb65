import APNsSimulator
import Foundation
import GatewayTLS
import GatewayTestSupport
import Testing
import WidgetModel

/// Traces of a real gateway, from the request of a backend to the notifications of devices.
@Suite(.alone) struct TracingTests {
    @Test func `a change is one trace from its post to what devices are told`() throws {
        let world = try TracedFixture()
        let collector = try CollectorProgram(
            certificate: (world.certificates.certificate, world.certificates.key))
        let receiver = try WebhookReceiver(in: world.data)
        try "# of the collector\nx-api-key: very-secret\n".write(
            toFile: world.data + "/headers", atomically: true, encoding: .utf8)
        let gateway = try world.gateway([
            "webhooks: { enabled: true, allowedRanges: [127.0.0.0/8], ca: "
                + "\(world.certificates.ca) }",
            "log: { levels: [timeline-gateway.requests=debug] }",
            "tracing:", "  endpoint: https://localhost:\(collector.port)/base/",
            "  headers: \(world.data)/headers", "  ca: \(world.certificates.ca)",
            "  share: 0", "  attributes: [deployment.environment.name=test]",
        ])
        let game = try GameFixture(gateway)
        let follower = try game.client("follower-anna", ["hero"])
        let registered = try receiver.register(
            "renderer-anna", at: "/hook", on: gateway, token: game.backend)
        try #require(registered.status == 201)
        let stream = game.stream(follower)
        try #require(stream.head()?.status == 200)
        let answer = try TracedFixture.post(
            game, TracedFixture.hero("one"),
            [("traceparent", TracedFixture.traceparent), ("tracestate", "vendor=x")])
        #expect(answer.header("traceparent") == nil)
        let sequence = try #require(answer["sequence"]?.integerValue)

        let names = ["commit", "decide", "deliver stream", "push webhook"]
        let request = "POST /v1/apps/{app}/changes"
        let spans = try collector.until("the whole trace") { spans in
            Set(spans.map(\.name)).isSuperset(of: names + [request])
        }
        // The catalog and the registrations began traces of their own, which are not recorded.
        #expect(Set(spans.map(\.trace)) == [TracedFixture.trace])
        #expect(Set(spans.map(\.id)).count == spans.count)
        #expect(spans.map(\.name).sorted() == (names + [request]).sorted(), "each once")
        #expect(spans.allSatisfy { $0.start > 0 && $0.start <= $0.end })
        #expect(spans.allSatisfy { $0.text("traceState") == "vendor=x" })
        let server = try #require(spans.first { $0.name == request })
        #expect(server.parent == TracedFixture.parent && server.kind == 2 && server.status == nil)
        #expect(
            server.attributes == [
                "http.request.method": "POST", "http.response.status_code": "202",
                "http.route": "/v1/apps/{app}/changes",
            ])
        func child(_ name: String) throws -> CollectorProgram.Span {
            let span = try #require(spans.first { $0.name == name })
            #expect(span.parent == server.id, "\(name)")
            return span
        }
        #expect(try child("commit").events == ["writing"])
        let change = [
            "timeline_gateway.app": GameFixture.app, "timeline_gateway.entity": "Character",
            "timeline_gateway.sequence": "\(sequence)", "timeline_gateway.changes": "1",
        ]
        func all(_ more: [String: String]) -> [String: String] {
            change.merging(more) { $1 }
        }
        let decide = try child("decide").attributes
        #expect(
            decide
                == all([
                    // The key of the hero, and the key of widgets without a character.
                    "timeline_gateway.keys": "2", "timeline_gateway.rules": "1",
                    "timeline_gateway.kinds": #"{"values":[{"stringValue":"detail"}]}"#,
                    "timeline_gateway.unmatched": "0", "timeline_gateway.broad": "0",
                ]))
        #expect(
            try child("deliver stream").attributes
                == all([
                    "timeline_gateway.channel": "stream", "timeline_gateway.deliveries": "1",
                    "timeline_gateway.collapsed": "false",
                ]))
        let push = try child("push webhook")
        #expect(push.kind == 3 && push.status == nil)
        #expect(
            push.attributes
                == all([
                    "timeline_gateway.channel": "webhook", "timeline_gateway.outcome": "sent",
                    "http.request.method": "POST", "http.response.status_code": "204",
                ]))

        // The rest of the collector's request, besides the spans.
        let first = try collector.request(0)
        #expect(first["path"] == "/base/v1/traces")
        let fields = try #require(first["fields"]?.objectValue)
        #expect(fields["content-type"] == "application/json")
        #expect(fields["x-api-key"] == "very-secret")
        let body = try #require(first["body"]?.stringValue)
        let resource = try JSONValue(parsing: Array(body.utf8)).objectValue?["resourceSpans"]?
            .arrayValue?.first?.objectValue?["resource"]?.objectValue
        let said = CollectorProgram.attributes(resource?["attributes"])
        #expect(said["service.name"] == "timeline-gateway")
        #expect(said["deployment.environment.name"] == "test")
        // No personal data, and no secret.
        for body in collector.bodies {
            for secret in ["anna", "hero", game.backend, follower.token, "very-secret"] {
                #expect(!body.contains(secret))
            }
        }

        // Notifications to devices and webhooks contain nothing of the trace.
        let hook = try #require(try receiver.request(1))
        var told: [String] = []
        while told.isEmpty {
            guard case .block(let block) = stream.next() else {
                throw TestFailure("the stream ended")
            }
            if let data = block.data { told.append(data) }
        }
        let hookText = JSONValue.object(hook).text
        told.append(hookText)
        let inner = try JSONValue(parsing: Array((hook["body"]?.stringValue ?? "").utf8))
        let notification = inner.objectValue?["notifications"]?.arrayValue?.first?.stringValue
        for jws in [told[0], try #require(notification)] {
            told += try jws.split(separator: ".").prefix(2).map {
                String(decoding: try #require(Base64.url.decode($0.utf8)), as: UTF8.self)
            }
        }
        #expect(told.last?.contains(#""reload""#) == true, "the claims are among it")
        for text in told {
            #expect(!text.lowercased().contains("traceparent"))
            #expect(!text.lowercased().contains("tracestate"))
            for id in [TracedFixture.trace] + spans.map(\.id) { #expect(!text.contains(id)) }
        }

        // The log lines of the request name its trace.
        let line = gateway.standardErrorTail.split(separator: "\n").first {
            $0.contains("a request was answered") && $0.contains("status=202")
        }
        #expect(line?.contains("trace_id=\(TracedFixture.trace)") == true, "\(line ?? "no line")")
        #expect(line?.contains("span_id=\(server.id)") == true)
        #expect(line?.contains("route=/v1/apps/{app}/changes") == true)
        #expect(!gateway.standardErrorTail.contains("very-secret"))
        try blockUntil("all are counted") {
            try TracedFixture.spans(gateway, "exported") == spans.count
        }
        stream.close()
        #expect(gateway.terminate() == .status(0))
    }

    @Test func `a push belongs to the trace of its change, whatever comes of it`() async throws {
        // Too long to be part of a random id.
        let (refused, taken) = (
            String(repeating: "aa01", count: 8), String(repeating: "aa02", count: 8)
        )
        let collector = try CollectorProgram()
        let world = try PushFixture(
            more: ["tracing: { endpoint: 'http://127.0.0.1:\(collector.port)', share: 0 }"])
        world.apns.script(refused, [.refused(.badDeviceToken)])
        try world.register("phone-anna", ["hero"], token: refused)
        try world.register("tablet-anna", ["hero"], token: taken)
        let answer = try world.gateway.http().request(
            "POST", "/v1/apps/\(PushFixture.app)/changes", token: world.backend,
            headers: [
                ("Content-Type", "application/cloudevents+json"),
                ("traceparent", TracedFixture.traceparent),
            ], body: TracedFixture.hero("one").text)
        let sequence = try #require(answer["sequence"]?.integerValue)
        try await world.until("pushed to") { $0.devices[taken]?.taken ?? 0 >= 1 }
        let spans = try collector.until("both pushes") { spans in
            spans.count { $0.name == "push widgets" } == 2 && spans.contains { $0.kind == 2 }
        }
        let server = try #require(spans.first { $0.kind == 2 })
        let pushes = spans.filter { $0.name == "push widgets" }
        #expect(pushes.allSatisfy { $0.trace == TracedFixture.trace && $0.parent == server.id })
        #expect(pushes.allSatisfy { $0.kind == 3 })
        let usual = [
            "timeline_gateway.app": PushFixture.app, "timeline_gateway.entity": "Character",
            "timeline_gateway.sequence": "\(sequence)", "timeline_gateway.changes": "1",
            "timeline_gateway.channel": "widgets", "http.request.method": "POST",
        ]
        let said = Dictionary(uniqueKeysWithValues: pushes.map { ($0.status, $0.attributes) })
        #expect(
            said == [
                nil: usual.merging([
                    "timeline_gateway.outcome": "sent", "http.response.status_code": "200",
                ]) { $1 },
                2: usual.merging([
                    "timeline_gateway.outcome": "dropped", "http.response.status_code": "400",
                    "timeline_gateway.reason": "BadDeviceToken",
                    "error.type": "BadDeviceToken",
                ]) { $1 },
            ])
        let push = try #require(world.apns.record.devices[taken]?.pushes.first?.request)
        #expect(push.otherFields.contains("content-length"))
        #expect(!push.otherFields.contains { $0.contains("trace") })
        let text = String(decoding: push.body, as: UTF8.self)
        #expect(text.contains("aps") && !text.contains("trace"))
        for id in [TracedFixture.trace] + spans.map(\.id) { #expect(!text.contains(id)) }
        for body in collector.bodies {
            for secret in ["anna", refused, taken, world.backend] {
                #expect(!body.contains(secret))
            }
        }
        await world.stop()
    }

    @Test func `an event's own trace holds for its change, and the flag of who began it`() throws {
        let world = try TracedFixture()
        let collector = try CollectorProgram()
        let gateway = try world.gateway([
            "tracing: { endpoint: 'http://127.0.0.1:\(collector.port)', share: 0 }"
        ])
        let game = try GameFixture(gateway)
        let follower = try game.client("follower", ["hero"])
        let stream = game.stream(follower)
        try #require(stream.head()?.status == 200)
        let own = "0af7651916cd43dd8448eb211c80319c"
        let (ownParent, quiet) = ("b7ad6b7169203331", "1af7651916cd43dd8448eb211c80319c")
        // None of these is recorded: not sampled, unreadable, absent, or in a request that is
        // rejected.
        try TracedFixture.post(
            game, TracedFixture.hero("one"),
            [("traceparent", "00-\(TracedFixture.trace)-\(TracedFixture.parent)-00")]
        )
        try TracedFixture.post(
            game, TracedFixture.hero("two"), [("traceparent", "00-\(TracedFixture.trace)-x-01")]
        )
        try TracedFixture.post(game, TracedFixture.hero("three"), [])
        let refused = try gateway.http().request(
            "POST", "/v1/apps/\(GameFixture.app)/changes", token: "nobody's",
            headers: [("traceparent", "00-\(quiet)-\(TracedFixture.parent)-01")], body: "{}")
        #expect(refused.status == 401)
        // Among these events, one has a trace of its own, and one has a trace that is not
        // recorded.
        let batch: JSONValue = .array([
            TracedFixture.hero("four"),
            TracedFixture.hero("five", [("traceparent", "00-\(own)-\(ownParent)-01")]),
            TracedFixture.hero("six", [("traceparent", "00-\(quiet)-\(ownParent)-00")]),
            // The same trace as the request's counts as the request's.
            TracedFixture.hero("seven", [("traceparent", TracedFixture.traceparent)]),
        ])
        let answer = try gateway.http().request(
            "POST", "/v1/apps/\(GameFixture.app)/changes", token: game.backend,
            headers: [
                ("Content-Type", "application/cloudevents-batch+json"),
                ("traceparent", TracedFixture.traceparent),
            ], body: batch.text)
        try #require(answer.status == 202, "\(answer.text)")
        let last = try #require(answer["sequence"]?.integerValue)
        let spans = try collector.until("both traces") { spans in
            ["deliver stream": 2, "decide": 2, "commit": 1, "change": 1].allSatisfy { name, count in
                spans.count { $0.name == name } >= count
            } && spans.contains { $0.kind == 2 }
        }
        #expect(Set(spans.map(\.trace)) == [TracedFixture.trace, own])
        let server = try #require(spans.first { $0.kind == 2 })
        let change = try #require(spans.first { $0.name == "change" })
        #expect(change.trace == own && change.parent == ownParent && change.kind == 5)
        #expect(change.links == [server.id])
        func sequences(_ trace: String, below parent: String) -> [String: [String]] {
            let below = spans.filter { $0.trace == trace && $0.parent == parent }
            return Dictionary(grouping: below, by: \.name).mapValues { spans in
                spans.map {
                    "\($0.attributes["timeline_gateway.sequence"] ?? "-") of "
                        + ($0.attributes["timeline_gateway.changes"] ?? "-")
                }
            }
        }
        #expect(
            sequences(own, below: change.id) == [
                "decide": ["\(last - 2) of 1"], "deliver stream": ["\(last - 2) of 1"],
            ])
        #expect(
            sequences(TracedFixture.trace, below: server.id) == [
                "commit": ["- of -"], "decide": ["\(last) of 2"],
                "deliver stream": ["\(last) of 2"],
            ])
        // In binary mode the extension is a header field of its own.
        _ = try gateway.http().request(
            "POST", "/v1/apps/\(GameFixture.app)/changes", token: game.backend,
            headers: [
                ("ce-specversion", "1.0"), ("ce-type", "t"), ("ce-source", "s"),
                ("ce-id", "binary"), ("ce-traceparent", "00-\(own)-\(ownParent)-03"),
            ], body: #"{"entity":"Character","id":"hero"}"#)
        let reload = try gateway.http().request(
            "POST", "/v1/apps/\(GameFixture.app)/reloads", token: game.backend,
            headers: [("traceparent", TracedFixture.traceparent)], body: #"{"kind":"detail"}"#)
        #expect(reload.status == 202)
        let more = try collector.until("the reload") { spans in
            ["deliver stream": 4, "commit": 2, "change": 2].allSatisfy { name, count in
                spans.count { $0.name == name } >= count
            } && spans.contains { $0.name.hasSuffix("/reloads") }
        }
        #expect(more.count { $0.name == "change" && $0.trace == own } == 2)
        let reloaded = try #require(more.first { $0.name.hasSuffix("/reloads") })
        #expect(
            Set(more.filter { $0.parent == reloaded.id }.map(\.name))
                == ["commit", "deliver stream"])
        stream.close()
        #expect(gateway.terminate() == .status(0))
    }
}
