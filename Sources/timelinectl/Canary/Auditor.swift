import CatalogModel
import Foundation
import GatewayDocuments
import TimelineRuntime
import WidgetModel

/// A client that registers and posts through several nodes in turn, and has a stream to each of
/// them.
///
/// Every change has a parameter value of its own, which the widgets of the last minute keep. So a
/// change is delivered only if the registration that one node accepted is in force at the others,
/// and no change waits for the collapse window of an earlier one.
actor Auditor {
    /// The timeout of a request: a change that takes longer cannot be delivered within 10 s.
    static let requestTimeout = Duration.seconds(10)
    /// The wait before a stream is opened again.
    private static let reconnectDelay = Duration.seconds(1)

    struct Node: Sendable {
        /// Its URL.
        let name: String
        let service: GatewayService
        let verifier: PublishedKeyVerifier

        init(name: String, service: GatewayService) {
            self.name = name
            self.service = service
            verifier = PublishedKeyVerifier(connection: service.connection, app: service.app)
        }
    }

    private struct Watched {
        let number: Int
        let plan: CanaryPlan
        var sequence: UInt64?
        var isAcknowledged = false
    }

    private let nodes: [Node]
    private let client: String
    private let kind: String?
    private let watchedMax: Int
    private let prefix = "canary-\(UUID().uuidString.lowercased())-"
    private let origin = ContinuousClock.now
    private var window: AuditWindow
    private var catalog: Catalog?
    private var watched: [Watched] = []
    private var cursors: [Cursor?]
    private var streams: [Task<Void, Never>] = []
    private var turn = 0
    private var failed: Set<Int> = []

    /// `interval` is the time between two changes.
    init(nodes: [Node], client: String, kind: String?, interval: Duration) {
        self.nodes = nodes
        self.client = client
        self.kind = kind
        watchedMax = Int((60 / interval.inSeconds).rounded(.up)) + 1
        window = AuditWindow(nodes: nodes.map(\.name))
        cursors = Array(repeating: nil, count: nodes.count)
    }

    private var now: Duration { origin.duration(to: .now) }

    /// Whether a change may still be delivered within 10 s.
    var isPending: Bool { window.isPending(at: now) }

    /// The figures of the last five minutes.
    var report: AuditReport { window.report(at: now) }

    /// Ends the streams and removes the registration.
    func leave() async {
        for stream in streams { stream.cancel() }
        for node in order(from: turn) {
            let service = nodes[node].service
            do throws(GatewayFailure) {
                _ = try await service.json("DELETE", service.base(ofClient: client))
                return
            } catch {
                if case .refused(let problem) = error, problem.status == 404 { return }
            }
        }
    }

    // MARK: Requests

    /// Acknowledges what was delivered, registers a widget and posts its change, each through the
    /// next node in turn. Throws ``CanaryPlan/Impossible`` when the catalog allows no change that
    /// concerns only the auditor.
    func round() async throws(CanaryPlan.Impossible) {
        let number = window.begin(at: now)
        turn += 1
        failed = []
        if catalog == nil {
            catalog = await attempt(for: number, from: turn) { service throws(GatewayFailure) in
                try await service.catalog()
            }
        }
        guard let catalog else { return }
        let plan = try CanaryPlan(catalog, kind: kind, value: prefix + String(number))
        await acknowledge(for: number)
        watched.append(Watched(number: number, plan: plan))
        if watched.count > watchedMax { watched.removeFirst() }
        guard await register(for: number) else { return }
        await post(plan, number: number)
    }

    /// Registers the widgets of the last minute, and opens the streams the first time.
    private func register(for number: Int) async -> Bool {
        let widgets = CanaryPlan.widgets(watched.map(\.plan))
        let isFirst = streams.isEmpty
        let cursor = await attempt(for: number, from: turn) {
            [client] service throws(GatewayFailure) in
            if !isFirst {
                do throws(GatewayFailure) {
                    return try await service.patch(["widgets": widgets], client: client)
                        .value.cursor
                } catch {
                    // Forgotten: the client registers again.
                    guard case .refused(let problem) = error, problem.status == 404 else {
                        throw error
                    }
                }
            }
            let answer = try await service.json(
                "PUT", service.base(ofClient: client),
                body: CanaryPlan.registration(widgets: widgets))
            guard
                let cursor = Cursor(text: try Registered(answer: answer.value).cursor)
            else { throw .unreadable("the response to the registration has no valid cursor") }
            return cursor
        }
        guard let cursor else { return false }
        if isFirst {
            cursors = Array(repeating: cursor, count: nodes.count)
            streams = nodes.indices.map { node in Task { await watch(node) } }
        }
        return true
    }

    private func post(_ plan: CanaryPlan, number: Int) async {
        // The same event everywhere: a node may have accepted it although its response was lost.
        let event = plan.event(id: UUID().uuidString).serialized
        let origin = origin
        let posted = await attempt(for: number, from: turn + 1) {
            service throws(GatewayFailure) in
            let sent = origin.duration(to: .now)
            let answer = try await service.document(
                "POST", "\(service.base)/changes", body: event,
                contentType: "application/cloudevents+json")
            let taken = try ChangesTaken(answer: answer.value)
            guard taken.sequence > 0 else {
                throw .unreadable("the response to the change has no sequence")
            }
            return (sequence: taken.sequence, sent: sent, isMatched: taken.unmatched == 0)
        }
        guard let posted else { return }
        window.accept(number, sequence: posted.sequence, sent: posted.sent)
        if let index = watched.firstIndex(where: { $0.number == number }) {
            watched[index].sequence = posted.sequence
        }
        guard !posted.isMatched else { return }
        catalog = nil
        for node in nodes.indices {
            window.refuse(
                number, node: node, reason: "the change matched no rule: the catalog was replaced",
                at: now)
        }
    }

    /// Acknowledges the changes that the most advanced stream covers.
    private func acknowledge(for number: Int) async {
        guard
            let cursor = cursors.compactMap({ $0 }).max(by: { $0.sequence < $1.sequence })
        else { return }
        let covered = watched.filter {
            !$0.isAcknowledged && $0.sequence.map { $0 <= cursor.sequence } ?? false
        }
        guard !covered.isEmpty else { return }
        let body = CanaryPlan.acknowledgement(cursor, of: covered.map(\.plan), milliseconds: nil)
        let answer = await attempt(for: number, from: turn) {
            [client] service throws(GatewayFailure) in
            try await service.json("POST", "\(service.base(ofClient: client))/acks", body: body)
        }
        guard answer != nil else { return }
        let numbers = Set(covered.map(\.number))
        for index in watched.indices where numbers.contains(watched[index].number) {
            watched[index].isAcknowledged = true
        }
    }

    /// Returns the indices of all nodes, beginning with the one whose turn it is.
    private func order(from turn: Int) -> [Int] {
        nodes.indices.map { (turn + $0) % nodes.count }
    }

    /// Sends a request through the first node that answers it. The change counts as not delivered
    /// at each node that failed.
    private func attempt<Value: Sendable>(
        for number: Int, from turn: Int,
        _ request: @Sendable (GatewayService) async throws(GatewayFailure) -> Value
    ) async -> Value? {
        for node in order(from: turn) where !failed.contains(node) {
            do throws(GatewayFailure) {
                return try await request(nodes[node].service)
            } catch {
                failed.insert(node)
                window.refuse(number, node: node, reason: Terminal.line(of: error), at: now)
            }
        }
        return nil
    }

    // MARK: Streams

    /// Keeps a stream at a node open until this task is cancelled.
    private func watch(_ node: Int) async {
        while !Task.isCancelled {
            do throws(GatewayFailure) {
                let feed = NotificationFeed(service: nodes[node].service, client: client)
                let stream = try await feed.open(since: cursors[node]?.text)
                var time = ServerTime()
                let opened = ContinuousClock.now
                time.note(stream.opening.date, now: .zero)
                window.connect(node)
                try await stream.read { [time] element in
                    let seconds = time.seconds(
                        now: opened.duration(to: .now),
                        fallback: Int64(Date().timeIntervalSince1970))
                    await self.accept(element, node: node, serverTime: seconds)
                    return true
                }
                window.disconnect(node, reason: "the stream ended", at: now)
            } catch {
                window.disconnect(node, reason: Terminal.line(of: error), at: now)
            }
            try? await Task.sleep(for: Self.reconnectDelay)
        }
    }

    private func accept(_ element: NotificationFeed.Element, node: Int, serverTime: Int64) async {
        switch element {
        case .retry: return
        case .moved(let cursor): cursors[node] = cursor
        case .notification(let text):
            let report = await NotificationReport.of(
                text, by: nodes[node].verifier, serverTime: serverTime)
            switch report.outcome {
            case .failure(let failure):
                window.reject(
                    node, reason: "verification failed: \(failure.message)", at: now)
            case .success(let claims):
                let time = now
                for one in watched where one.plan.concerns(claims) {
                    window.notify(
                        one.number, node: node, sequence: claims.sequence, at: time)
                }
            }
        }
    }
}
