import Foundation
import TimelineGatewayClient
import WidgetModel
import WidgetViews

extension TimelineClient {
    func perform(_ action: EngineAction) async {
        switch action {
        case .register(let registration) where configuration.sharesClient:
            await reconcile(registration)
        case .register(let registration): await register(registration)
        case .reconcile(let registration): await reconcile(registration)
        case .connect(let attempt, let since): await connect(attempt, since: since)
        case .build(let info): await build(info)
        case .recommend(let kind): await recommend(kind)
        case .acknowledge(let acknowledgement): await acknowledge(acknowledgement)
        case .save, .saveBudgets: break
        }
    }

    private func register(_ registration: ClientRegistration) async {
        do throws(GatewayFailure) {
            let complete = archive?.completed(registration) ?? registration
            guard let last = engine?.registered else {
                let answer = try await service.register(complete, client: configuration.client)
                tellRegistered(answer)
                handle(.registered(answer.value.cursor, digest: answer.value.digest))
                return
            }
            let answer = try await service.patch(
                registration.patch(since: last, completed: complete),
                client: configuration.client)
            tellRegistered(answer)
            handle(
                answer.value.digest == nil
                    ? .registered(answer.value.cursor) : .patched(answer.value.cursor))
        } catch {
            tell(.failed(error))
            handle(.registrationFailed(error.refusal))
        }
    }

    /// Registers only those members of this process that the registration in force lacks.
    private func reconcile(_ registration: ClientRegistration) async {
        do throws(GatewayFailure) {
            let complete = archive?.completed(registration) ?? registration
            let read = try await service.registration(ofClient: configuration.client)
            serverTime.note(read.head["date"], now: now)
            var shared = complete
            (shared.widgets, shared.recommendations) = ([], [])
            (shared.activities, shared.activityStarts) = ([], [])
            // Kinds that an earlier version of this extension declared are removed.
            let last = engine?.registered
            let before = last.map { ReloadEngine.items(of: $0).map(\.kind) } ?? []
            var patch = read.value.patch(
                to: complete, kinds: Set(declared.kinds + declared.activityTypes + before),
                includesShared: shared != sharedRegistered)
            // The answer has the cursor that new items start at, even if all is registered already.
            if patch == nil, last == nil || engine?.isUnplaced == true {
                patch = ["platform": .string(complete.platform)]
            }
            guard let patch else {
                handle(.registered(nil, digest: read.value.digest))
                return
            }
            let answer = try await service.patch(patch, client: configuration.client)
            sharedRegistered = shared
            tellRegistered(answer)
            // If the patch changed nothing, the gateway does not store the missing members.
            handle(
                answer.value.digest == read.value.digest
                    ? .registered(answer.value.cursor, digest: answer.value.digest)
                    : .patched(answer.value.cursor))
        } catch {
            // The first extension of a client registers it.
            if error.refusal == .unknownClient, engine?.registered == nil {
                return await register(registration)
            }
            tell(.failed(error))
            handle(.registrationFailed(error.refusal))
        }
    }

    private func tellRegistered(_ answer: GatewayService.Answer<GatewayService.Registered>) {
        serverTime.note(answer.head["date"], now: now)
        tell(.registered(warnings: answer.value.warnings))
    }

    private func acknowledge(_ acknowledgement: Acknowledgement) async {
        do throws(GatewayFailure) {
            let head = try await service.acknowledge(
                acknowledgement, client: configuration.client, registration: engine?.digest)
            serverTime.note(head["date"], now: now)
            handle(.acknowledged)
        } catch {
            tell(.failed(error))
            handle(.acknowledgementFailed(error.refusal))
        }
    }

    private func connect(_ attempt: Int, since: Cursor?) async {
        let feed = NotificationFeed(
            service: service, client: configuration.client, registration: engine?.digest)
        var isOpen = false
        var ending = EngineEvent.Ending.closed
        do throws(GatewayFailure) {
            switch isOnePass ? .poll(every: .zero) : configuration.mode {
            case .stream:
                let stream = try await feed.open(since: since?.text)
                isOpen = true
                opened(attempt, stream.opening)
                try await stream.read { await self.take($0, attempt) }
            case .poll:
                let poll = try await feed.poll(since: since?.text)
                isOpen = true
                opened(attempt, poll.opening)
                let told =
                    poll.notifications.map { NotificationFeed.Element.notification($0) }
                    + [poll.cursor].compactMap { $0 }.map { .moved($0) }
                for element in told {
                    guard await take(element, attempt) else { break }
                }
                ending = .polled
            }
        } catch {
            tell(.failed(error))
            if !isOpen { ending = .refused(error.refusal) }
        }
        handle(.ended(attempt: attempt, ending))
    }

    private func opened(_ attempt: Int, _ opening: NotificationFeed.Opening) {
        serverTime.note(opening.date, now: now)
        tell(.connected(resumedFrom: opening.resumedFrom))
        handle(.opened(attempt: attempt, resumedFrom: opening.resumedFrom))
    }

    private func take(_ element: NotificationFeed.Element, _ attempt: Int) async -> Bool {
        guard engine?.isCurrent(attempt: attempt) == true else { return false }
        switch element {
        case .retry(let wait): handle(.retryHint(wait))
        case .moved(let cursor): handle(.idMoved(attempt: attempt, cursor))
        case .notification(let text):
            let seconds = serverTime.seconds(
                now: now, fallback: Int64(Date().timeIntervalSince1970))
            do throws(VerificationFailure) {
                let claims = try await verifier.verify(text, serverTime: seconds)
                tell(.notified(claims))
                for kind in claims.relevance { tell(.relevanceInvalidated(kind: kind)) }
                handle(.notification(attempt: attempt, claims))
                for control in declared.controls
                where claims.all || claims.controls.contains(control.kind) {
                    start { await self.rebuildControls(ofKind: control.kind) }
                }
            } catch {
                tell(.unverified(error))
                handle(.verificationFailed(attempt: attempt))
            }
        }
        return engine?.isCurrent(attempt: attempt) == true
    }

    private func build(_ info: WidgetInfo) async {
        guard info.activityID == nil else { return await refreshActivity(info) }
        let start = now
        do {
            let (timeline, drawn) = try await Deadline.run(configuration.buildDeadline) {
                [declared, device = configuration.device] in
                let timeline = try await declared.timeline(of: info)
                return (timeline, try declared.archive(timeline, of: info, on: device))
            }
            guard widgets.contains(info) else {
                handle(.rebuilt(info, milliseconds: 0, reloadDate: nil))
                return
            }
            // Saved before the state that records it: a crash between the two costs one more build.
            try archive?.save(timeline: drawn)
            let isUnchanged = timelines[info]?.entries == drawn.entries
            timelines[info] = drawn
            interactions.rebuilt(info, begunAt: start, node: drawn.anyNode(at: .now))
            resumeWaiters(info, begunAt: start, drawn)
            tell(.rebuilt(info, timeline))
            if let seconds = EntrySequence(timeline).shortestSpacing,
                seconds < EntrySequence.advisedSpacing
            {
                tell(.entriesTooClose(info, seconds: seconds))
            }
            handle(
                .rebuilt(
                    info, milliseconds: Int(clamping: (now - start).milliseconds),
                    reloadDate: timeline.reloadDate, isUnchanged: isUnchanged))
        } catch {
            let reason = Self.reason(of: error)
            resumeWaiters(info, begunAt: start, nil)
            tell(.buildFailed(info, reason: reason))
            handle(.buildFailed(info, reason: reason))
        }
    }

    private func recommend(_ kind: String) async {
        do {
            let items = try await Deadline.run(configuration.buildDeadline) { [declared] in
                try await declared.recommendations(ofKind: kind) ?? []
            }
            handle(.recommended(kind: kind, items))
        } catch {
            tell(.recommendationsFailed(kind: kind, reason: Self.reason(of: error)))
            handle(.recommendFailed(kind: kind))
        }
    }

    /// Returns the reason to report to the gateway's operator. It never includes values that a
    /// person chose.
    static func reason(of error: any Error) -> String {
        (error as? WidgetFailure)?.description
            ?? (error as? IntentError)?.description
            ?? (error as? Deadline.Passed)?.description
            ?? (error as? ProcessUnreachable)?.description
            ?? (error as? ClientArchive.Failure)?.description ?? "\(type(of: error))"
    }
}
