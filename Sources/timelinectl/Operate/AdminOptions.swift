import ArgumentParser
import Foundation
import GatewayDocuments
import TimelineRuntime
import WidgetModel

/// The address of the admin port and the caller's credentials.
struct AdminOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Admin port (TIMELINECTL_ADMIN). Default 127.0.0.1:9464.",
            valueName: "host:port"))
    var admin: String?

    @Option(help: ArgumentHelp("Certificates to trust (TIMELINE_GATEWAY_CA).", valueName: "file"))
    var ca: String?

    @Option(
        help: ArgumentHelp(
            "A token with the scope operator:read (TIMELINE_GATEWAY_TOKEN); not needed on loopback.",
            valueName: "token"))
    var token: String?

    @Flag(help: "Print JSON, one document per line.")
    var json = false

    var form: OutputForm { json ? .json : .text }

    /// A connection to the port: plain HTTP on loopback, as the port expects, and TLS elsewhere.
    /// Throws `ValidationError` if the address is missing or malformed.
    func connection(
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws -> AdminConnection {
        let stated = admin ?? environment["TIMELINECTL_ADMIN"] ?? ""
        let place = stated.isEmpty ? "127.0.0.1:9464" : stated
        guard let origin = Self.origin(place) else {
            throw ValidationError("--admin must be HOST:PORT")
        }
        var options = CommonOptions()
        (options.url, options.ca, options.token) = (origin, ca, token)
        var configuration = try options.configuration(environment: environment)
        configuration.speaksPlainHTTP = origin.hasPrefix("http:")
        // On loopback anyone may read, but a token that is not an operator's is rejected.
        if configuration.speaksPlainHTTP, token == nil { configuration.bearerToken = nil }
        // An event arrives every second.
        configuration.silenceMax = .seconds(15)
        configuration.requestDeadline = .seconds(20)
        do throws(ConnectionError) {
            return AdminConnection(
                service: GatewayService(
                    connection: try AdvisedConnection(configuration), app: "*"), place: place)
        } catch {
            throw ValidationError(error.message)
        }
    }

    /// The origin for `HOST:PORT`; `nil` if it is malformed.
    static func origin(_ place: String) -> String? {
        if place.contains("://") { return place }
        guard let colon = place.lastIndex(of: ":"), colon > place.startIndex,
            let port = UInt16(place[place.index(after: colon)...]), port > 0
        else { return nil }
        let host = place[..<colon]
        let isLoopback = host == "localhost" || host == "[::1]" || host.hasPrefix("127.")
        return "\(isLoopback ? "http" : "https")://\(host):\(port)"
    }
}

/// A client of an admin port.
struct AdminConnection: Sendable {
    private let service: GatewayService
    /// The address as stated.
    let place: String

    init(service: GatewayService, place: String) {
        (self.service, self.place) = (service, place)
    }

    /// Fetches a page as an object; an empty one if the response is not an object.
    func page(_ path: String) async throws(GatewayFailure) -> JSONObject {
        try await service.json("GET", path).value.objectValue ?? [:]
    }

    /// Fetches the push problems of an app.
    func events(of app: String) async throws(GatewayFailure) -> [PushEvent] {
        let base = GatewayService(connection: service.connection, app: app).base
        return try PushEvents(answer: .object(try await page("\(base)/events"))).events
    }

    /// Fetches a page that is not JSON.
    func text(_ path: String) async throws(GatewayFailure) -> String {
        let answer: GatewayResponse
        do throws(ConnectionError) {
            answer = try await service.connection.send(GatewayRequest(target: path))
        } catch {
            throw .connection(error)
        }
        guard answer.head.status == 200 else {
            throw .refused(GatewayService.problem(answer.head, answer.body))
        }
        return String(decoding: answer.body, as: UTF8.self)
    }

    /// Streams the status, every second, until `take` returns `false` or the stream ends.
    func live(
        _ take: (_ overview: JSONObject) async -> Bool
    ) async throws(GatewayFailure) {
        let stream: GatewayStream
        do throws(ConnectionError) {
            stream = try await service.connection.stream(
                GatewayRequest(
                    target: "/api/live", headers: [(name: "accept", value: "text/event-stream")]))
        } catch {
            throw .connection(error)
        }
        guard stream.head.status == 200 else {
            throw .refused(GatewayService.problem(stream.head, []))
        }
        var parser = EventStreamParser()
        var pieces = stream.body.makeAsyncIterator()
        while true {
            let piece: [UInt8]?
            do throws(ConnectionError) {
                piece = try await pieces.next()
            } catch {
                throw .connection(error)
            }
            guard let piece else { return }
            guard let blocks = try? parser.parse(piece) else {
                throw .unreadable("a line of its event stream is too long")
            }
            for block in blocks {
                guard let data = block.data,
                    let overview = try? JSONValue(parsing: Array(data.utf8)).objectValue
                else { continue }
                guard await take(overview) else { return }
            }
        }
    }
}
