// swift-format-ignore-file
// What the folder Apple asks of each system: Deploy/check-client runs it on the stubs.
import AppIntents
@testable import AppleFoundation
@testable import WidgetKit
import WidgetModel
#if os(iOS)
    @testable import ActivityKit

    struct Crossing: ActivityAttributes {
        struct ContentState: Codable, Hashable {}
        var line: String
    }
#endif

struct Line: WidgetConfigurationIntent, ControlConfigurationIntent, GatewayIntent {
    var gatewayParameters: [String: ParameterValue] { ["line": .single("7")] }
}

@main enum Devices {
    static func main() async throws {
        let platform = ClientRegistration.ofThisDevice().platform
        precondition(platform == CommandLine.arguments[1], "the platform is called \(platform)")
        var content = StaleContent()
        (content.timelines, content.recommendations) = (["t"], ["t"])
        (content.relevance, content.controls) = (["r"], ["c"])
        let invalidated = ["invalidateConfigurationRecommendations()", "invalidateRelevance r"]
        expect(["reloadTimelines t"] + invalidated, control: "reloadControls c", for: content)
        content.all = true
        expect(["reloadAllTimelines()"] + invalidated, control: "reloadAllControls()", for: content)
        chosen = Line()
        let values = Line().gatewayParameters
        placedWidgets = [WidgetInfo(kind: "w", family: .systemSmall)]
        let widgets = try await WidgetCenter.shared.configuredWidgets(of: [Line.self])
        let widget = ConfiguredWidget(kind: "w", family: "systemSmall", parameters: values)
        precondition(widgets == [widget], "a placed widget is registered as \(widgets)")
        #if !os(visionOS)
            placedControls = [ControlInfo(id: "1", kind: "c", pushInfo: .init(token: Data([10, 255])))]
            let controls = try await ControlCenter.shared.placedControls(of: [Line.self])
            let own = DeliveryAddress.apns(.init(pushType: "controls", token: "0aff"))
            let control = PlacedControl(kind: "c", id: "1", parameters: values, delivery: own)
            precondition(controls == [control], "a placed control is registered as \(controls)")
        #endif
        let url = URL(fileURLWithPath: "/")
        let connection = URLSessionConnection(gateway: "https://a", bearerToken: { "secret" })!
        answer = { sent in
            precondition(sent.allHTTPHeaderFields == ["Authorization": "Bearer secret"], "no token")
            return HTTPURLResponse(url: url, statusCode: 409, httpVersion: nil, headerFields: nil)!
        }
        let response = try await connection.send(GatewayRequest(target: "/"))
        precondition(response.body == [1, 10, 2], "the body is \(response.body)")
        precondition(begun.last?.isCancelled == true, "an exchange that has ended goes on")
        answer = { _ in
            URLResponse(url: url, mimeType: nil, expectedContentLength: 0, textEncodingName: nil)
        }
        _ = try? await connection.send(GatewayRequest(target: "/"))
        precondition(begun.last?.isCancelled == true, "an answer that is not HTTP goes on")
        let failures: [(URLError.Code, ConnectionError.Code)] = [
            (.timedOut, .timedOut), (.cannotFindHost, .unresolved), (.cancelled, .cancelled),
            (.serverCertificateUntrusted, .notTrusted), (.unknown, .broken),
        ]
        for (failure, code) in failures {
            answer = { _ in throw URLError(failure) }
            do throws(ConnectionError) {
                _ = try await connection.send(GatewayRequest(target: "/"))
                preconditionFailure("nothing is thrown for \(failure)")
            } catch {
                precondition(error.code == code, "\(failure) is called \(error.code.rawValue)")
            }
        }
        #if os(iOS)
            all = [Activity("1", Crossing(line: "7")), Activity("2", Crossing(line: "8"))]
            let client = GatewayClient(
                app: "a", client: "c", connection: connection,
                verifier: PublishedKeyVerifier(connection: connection, app: "a"),
                directory: url.appending(path: "tmp/\(UUID().uuidString)"),
                registration: { .ofThisDevice() })!
            var sent = ""
            answer = { request in
                sent = String(decoding: request.httpBody ?? Data(), as: UTF8.self)
                return HTTPURLResponse(url: url, statusCode: 503, httpVersion: nil, headerFields: nil)!
            }
            await client.followActivities(of: Crossing.self, channel: { "c" + $0.line })
            let address = #""delivery":{"type":"apns","pushType":"liveactivity","token":"#
            let channel = #"[{"type":"Crossing","id":"1","attributes":{"line":"7"},"channel":"c7","#
            let parts = [channel + address + #""0aff","#, #"[{"type":"Crossing","# + address + #""01","#]
            let isWhole = parts.allSatisfy { sent.contains($0) } && !sent.contains(#""id":"2""#)
            precondition(isWhole, "activities are registered as \(sent)")
        #endif
    }

    static func expect(_ calls: [String], control: String, for content: StaleContent) {
        asked = []
        StaleContent.reloadWithWidgetKit(content)
        let expected = calls + (CommandLine.arguments[1] == "visionOS" ? [] : [control])
        precondition(asked == expected, "stale content asks for \(asked), not \(expected)")
    }
}
