// swift-format-ignore-file
// What the folder Apple asks of each system: Deploy/check-client runs it on the stubs.
import AppIntents
@testable import AppleFoundation
@testable import WidgetKit
import WidgetModel

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
    }

    static func expect(_ calls: [String], control: String, for content: StaleContent) {
        asked = []
        StaleContent.reloadWithWidgetKit(content)
        let expected = calls + (CommandLine.arguments[1] == "visionOS" ? [] : [control])
        precondition(asked == expected, "stale content asks for \(asked), not \(expected)")
    }
}
