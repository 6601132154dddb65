import ArgumentParser
import Foundation
import GatewayDocuments
import GatewayOperations
import GatewayTelemetry
import Synchronization
import TimelineRuntime
import WidgetModel

/// All simulated devices, from their start to their removal.
struct Fleet: Sendable {
    /// Streams per libcurl thread: libcurl looks at all of a thread's transfers when one is ready.
    private static let streamsOfThread = 250
    /// Devices whose requests share one libcurl thread and its connections. Streams use other
    /// threads: libcurl would conclude from a stream's HTTP/1.1 that requests cannot share a
    /// connection either.
    private static let requestersOfThread = 1_000
    /// Sockets and pipes that a thousand devices need in addition to their streams.
    private static let spareFilesOfThousand = 64
    /// The maximum number of consecutive attempts to post a change or to remove a client.
    private static let triesMax = 3
    /// The shortest patience with the gateway, which counts the last rebuilds only after a
    /// heartbeat.
    private static let confirmationMin = 20.0
    /// The maximum number of devices that connect at the same time.
    private static let connectingMax = 64

    private let plan: FleetPlan
    private let backend: GatewayService
    private let order: DeviceCommand
    private let record: FleetRecord
    private let devices: [SimulatedDevice]
    private let table: FleetTable

    /// Checks that the system lets one process hold so many streams. Throws `ValidationError` if
    /// not.
    static func requireOpenFiles(devices: Int) throws {
        let needed = devices + (devices / 1_000 + 2) * spareFilesOfThousand
        let limit = OpenFiles.raiseLimit()
        guard limit >= needed else {
            throw ValidationError(
                """
                \(devices) devices need \(needed) open files and the limit is \(limit); raise it \
                (ulimit -Hn) or simulate fewer
                """)
        }
    }

    /// - Parameter order: The options of the command line.
    init(
        _ plan: FleetPlan, app: String, configuration: CurlConnection.Configuration,
        backend: GatewayService, order: DeviceCommand
    ) throws {
        self.plan = plan
        self.backend = backend
        self.order = order
        let record = FleetRecord(
            plan, judgesStrays: order.post != nil, patience: .seconds(order.patience))
        self.record = record
        table = FleetTable(plan, form: order.options.form)
        var configuration = configuration
        configuration.bearerToken = nil
        configuration.isolatesStreams = true
        var requests: CurlConnection?
        var streams: CurlConnection?
        var verifier: SharedVerifier?
        devices = try plan.devices.enumerated().map { place, device in
            if place % Self.requestersOfThread == 0 {
                requests = try CurlConnection(configuration)
            }
            if place % Self.streamsOfThread == 0 { streams = try CurlConnection(configuration) }
            guard let requests, let streams else { throw ExitStatus.unreachable }
            let verifying =
                verifier ?? SharedVerifier(PublishedKeyVerifier(connection: requests, app: app))
            verifier = verifying
            let connection = BearerConnection(
                requests: requests, streams: streams, token: device.client.token)
            return SimulatedDevice(
                device, service: GatewayService(connection: connection, app: app),
                verifier: verifying, record: record,
                buildTime: .milliseconds(order.buildMilliseconds),
                seed: order.seed &* 0x9E37_79B9_7F4A_7C15 &+ UInt64(place))
        }
    }

    /// Runs the simulation to its end. Throws `GatewayFailure` if nothing works from the start, or
    /// the `ExitCode` of a later failure.
    func run() async throws {
        let interruption = Interruption()
        let page = try order.adminConnection()
        let outcome = await withDiscardingTaskGroup { group in
            let outcome = await play(in: &group, page, interruption)
            group.cancelAll()
            return outcome
        }
        await forget()
        try outcome.get()
    }

    private func play(
        in group: inout DiscardingTaskGroup, _ page: AdminConnection?, _ interruption: Interruption
    ) async -> Result<Void, any Error> {
        let start = ContinuousClock.now
        do {
            try await ramp(in: &group, interruption)
            let ramp = ContinuousClock.now - start
            Terminal.complain(
                "timelinectl: \(devices.count) devices are ready after \(FleetTable.text(ramp))")
            let before = await page?.freshness()
            try await watch(interruption)
            let gateway = await gatewayFreshness(since: before, page)
            let end = record.snapshot
            table.show(
                FleetTable.Summary(
                    devices: devices.count, ramp: ramp, snapshot: end, gateway: gateway,
                    postsOwn: order.post != nil))
            if order.admin != nil, gateway == nil {
                Terminal.complain("timelinectl: cannot read the gateway's freshness metric")
                throw ExitStatus.unreachable
            }
            if end.unverified > 0 { throw ExitStatus.unverified }
            if end.lost > 0 || end.strays > 0 { throw ExitStatus.missed }
            if end.connected < devices.count { throw ExitStatus.unreachable }
            return .success(())
        } catch {
            return .failure(error)
        }
    }

    /// The gateway's measurements, once it has counted the rebuilds done here. It counts a rebuild
    /// when the device's cursor covers its change: at once, or after a heartbeat of the stream.
    private func gatewayFreshness(
        since before: HistogramCounts?, _ page: AdminConnection?
    ) async -> HistogramCounts? {
        guard let before, let page else { return nil }
        let end = ContinuousClock.now + .seconds(max(order.patience, Self.confirmationMin))
        while true {
            let freshness = await page.freshness()?.since(before)
            let isComplete = freshness?.total ?? 0 >= record.snapshot.all.total.count
            if isComplete || order.post == nil || ContinuousClock.now >= end { return freshness }
            try? await Task.sleep(for: .milliseconds(200))
        }
    }

    /// Starts the devices; returns when each has built everything and has an open stream.
    private func ramp(
        in group: inout DiscardingTaskGroup, _ interruption: Interruption
    ) async throws {
        let progress = Progress("devices connected")
        let patience = Duration.seconds(order.patience)
        var started = 0
        var last = (sum: 0, at: ContinuousClock.now)
        while true {
            let now = record.snapshot
            if now.connected == devices.count, now.ready == now.all.timelines { return }
            let sum = now.connected + now.ready
            if sum > last.sum { last = (sum, .now) }
            // A failure from the start is a mistake to correct, not an outage to wait out.
            if now.connected == 0, let failure = now.failure { throw failure }
            if interruption.hasCome || ContinuousClock.now - last.at > patience {
                Terminal.complain(
                    "timelinectl: \(now.connected) of \(devices.count) devices are connected"
                        + (now.failure.map { "; the last failure: \($0)" } ?? ""))
                throw ExitStatus.unreachable
            }
            progress.reach(Int64(now.connected), of: Int64(devices.count))
            while started < min(devices.count, now.connected + Self.connectingMax) {
                let device = devices[started]
                group.addTask { await device.run() }
                started += 1
            }
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    /// Posts and prints until the time is over, then waits for the reloads that are due.
    private func watch(_ interruption: Interruption) async throws {
        let start = ContinuousClock.now
        let end = order.duration.map { start + .seconds($0) }
        let posting = Task { try await post(until: end) }
        defer { posting.cancel() }
        var window = start
        _ = record.endWindow()
        var isPosting = true
        while true {
            try await Task.sleep(for: .milliseconds(20))
            let now = ContinuousClock.now
            record.giveUp()
            if now - window >= .seconds(order.every) {
                table.show(record.endWindow(), after: now - start)
                window = now
            }
            if isPosting, interruption.hasCome || end.map({ now >= $0 }) ?? false {
                posting.cancel()
                try await posting.value
                isPosting = false
            }
            if !isPosting, record.snapshot.due == 0 { break }
        }
        table.show(record.endWindow(), after: .now - start)
    }

    /// Posts at the requested rate, one change at a time: a slower gateway receives fewer requests.
    private func post(until end: ContinuousClock.Instant?) async throws {
        guard let rate = order.post else { return }
        var generator = SplitMix64(seed: order.seed)
        let source = "/timelinectl/device/\(UUID().uuidString)"
        let start = ContinuousClock.now
        var posted = 0
        while !Task.isCancelled {
            posted += 1
            let due = start + .seconds(Double(posted) / rate)
            if let end, due >= end { return }
            try? await Task.sleep(until: due, clock: .continuous)
            guard !Task.isCancelled, let change = plan.change(using: &generator) else { return }
            let number = record.post(plan.timelines(concernedBy: change))
            let event = CloudEvent(source: source, id: String(posted), change: change)
            // Not cancelled halfway: a change that the gateway accepted is due.
            let answer = await Task {
                var answer = await backend.post(event)
                // The response to an accepted change may be lost; posting the same event again has
                // no effect.
                for _ in 1..<Self.triesMax {
                    guard case .failure(let failure) = answer, failure.mayPass else { break }
                    answer = await backend.post(event)
                }
                return answer
            }.value
            switch answer {
            case .success(let sequence): record.accepted(number, at: sequence)
            case .failure(let failure):
                record.refused(number)
                if posted == 1 { throw failure }
                record.failed(failure)
            }
        }
    }

    /// Removes the devices from the gateway.
    private func forget() async {
        let (progress, count) = (Progress("devices removed"), Int64(devices.count))
        let removed = try? await concurrently(devices, atOnce: 32) { device in
            defer { progress.reach(of: count) }
            for _ in 0..<Self.triesMax {
                do throws(GatewayFailure) {
                    try await device.forget()
                    return true
                } catch {
                    // The response to a completed removal may be lost.
                    if case .refused(let problem) = error, problem.status == 404 { return true }
                    guard error.mayPass else { return false }
                }
            }
            return false
        }
        let left = devices.count - (removed ?? []).count { $0 }
        if left > 0 { Terminal.complain("timelinectl: \(left) clients could not be removed") }
    }
}

/// Whether Ctrl-C or SIGTERM asked for the end; the same signal a second time ends the process at
/// once.
final class Interruption: Sendable {
    private static let signals = [SIGINT, SIGTERM]

    // Sound: set up by `init`, and touched by `deinit` alone after it.
    nonisolated(unsafe) private let sources: [any DispatchSourceSignal]
    private let flag = Mutex(false)

    init() {
        sources = Self.signals.map { number in
            signal(number, SIG_IGN)
            return DispatchSource.makeSignalSource(signal: number, queue: .global())
        }
        for (number, source) in zip(Self.signals, sources) {
            source.setEventHandler { [weak self] in
                self?.flag.withLock { $0 = true }
                signal(number, SIG_DFL)
            }
            source.resume()
        }
    }

    deinit {
        for source in sources { source.cancel() }
        for number in Self.signals { signal(number, SIG_DFL) }
    }

    var hasCome: Bool { flag.withLock { $0 } }
}

extension GatewayService {
    /// Posts a change; returns its sequence once the gateway has written it to disk.
    func post(_ event: CloudEvent) async -> Result<UInt64, GatewayFailure> {
        do throws(GatewayFailure) {
            let answer = try await json(
                "POST", "\(base)/changes", body: event.json,
                contentType: "application/cloudevents+json")
            return .success(try ChangesTaken(answer: answer.value).sequence)
        } catch {
            return .failure(error)
        }
    }
}
