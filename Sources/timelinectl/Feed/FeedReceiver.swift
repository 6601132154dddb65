import GatewaySigning
import NIOHTTP1
import TimelineRuntime
import WidgetModel

/// Posts what connectors post to this program, and answers when the gateway has accepted it.
actor FeedReceiver {
    private let mapping: FeedMapping
    private let token: SHA256Digest?
    private let service: GatewayService
    private var report: PostingReport

    /// - Parameter token: The token that requests must have; without one, only names of this
    ///   machine are served.
    init(
        mapping: FeedMapping, token: SHA256Digest?, form: OutputForm, service: GatewayService
    ) {
        (self.mapping, self.token, self.service) = (mapping, token, service)
        report = PostingReport(form: form)
    }

    /// Returns when a signal asks for the end.
    func waitForEnd() async {
        while !report.isInterrupted { try? await Task.sleep(for: .milliseconds(200)) }
        report.print(isLast: true)
    }

    func answer(to request: LocalServer.Request) async -> LocalServer.Answer {
        var events: [DatabaseEvent]
        do {
            // The value of a tombstone may be posted as nothing.
            let isEmpty = request.body.isEmpty
            let records: JSONValue = try isEmpty ? .null : JSONValue(parsing: request.body)
            events = try mapping.events(of: records) { report.complain($0) }
        } catch {
            let text =
                "\(error). Nothing of this batch is posted; a connector repeats it until that is "
                + "mended"
            Terminal.complain("timelinectl: refused records: \(text)")
            return .init(.badRequest, body: "\(text)\n")
        }
        var poster = EventPoster(service: service, until: report.interruption)
        var failed: (failure: GatewayFailure, wait: Duration)?
        while !events.isEmpty, failed == nil { failed = await poster.post(&events) }
        report.figures.add(poster.takeFigures())
        report.print()
        guard let failed else { return .init(.noContent) }
        let line = Terminal.line(of: failed.failure)
        report.fail(line)
        let seconds = max(1, failed.wait.components.seconds)
        return .init(.serviceUnavailable, ["Retry-After": "\(seconds)"], body: "\(line)\n")
    }

    /// Returns the refusal of a request that a page of a browser may have made, or a stranger.
    nonisolated func refusal(of request: LocalServer.Request) -> LocalServer.Answer? {
        let headers = request.head.headers
        if let token {
            let stated = headers.first(name: "Authorization")?.split(separator: " ") ?? []
            guard stated.count == 2, stated[0].lowercased() == "bearer",
                (try? SHA256Digest(of: Array(stated[1].utf8))) == token
            else { return .init(.unauthorized, body: "Authorization must be the bearer token\n") }
        } else if !request.isForThisMachine {
            return .init(.forbidden, body: "set TIMELINE_FEED_TOKEN to serve other names\n")
        }
        guard request.head.method == .POST else {
            return .init(.methodNotAllowed, ["Allow": "POST"])
        }
        guard let type = headers.first(name: "Content-Type"), MediaType(type).isJSON else {
            return .init(.unsupportedMediaType, body: "Content-Type must be application/json\n")
        }
        return nil
    }
}
