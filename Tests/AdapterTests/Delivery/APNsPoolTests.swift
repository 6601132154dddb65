import APNsSimulator
import GatewayCore
import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayDelivery

/// What a pool does, over TLS, about every kind of answer. `APNsReactionTests` has each row of the
/// table of statuses and reasons.
@Suite(.timeLimit(.minutes(30))) struct APNsPoolTests {
    /// Returns the result of a push to a device with these behaviours.
    private func result(
        _ behaviours: PushBehaviour..., clock: FastClock = FastClock(),
        pool: (inout APNsPool.Configuration) -> Void = { _ in },
        push change: (inout APNsPush) -> Void = { _ in }
    ) async throws -> (result: APNsPushResult, record: PushRecord) {
        let fixture = try APNsFixture(clock: clock, pool: pool)
        // Give the connection its first success.
        try await eventually("the first push is delivered") {
            try await fixture.send(to: "ff").reaction == APNsReaction(.delivered)
        }
        fixture.server.script(APNsFixture.token, behaviours)
        let result = try await fixture.send(push: change)
        await fixture.stop()
        #expect(fixture.server.record.violations.isEmpty)
        #expect(result.requests == fixture.device().requests)
        return (result, fixture.server.record)
    }

    // MARK: Taken

    @Test func `200 counts as delivered`() async throws {
        let fixture = try APNsFixture()
        let result = try await fixture.send()
        #expect(result.reaction == APNsReaction(.delivered))
        #expect(result.outcome == .answered(status: 200) && result.requests == 1)
        #expect(result.uniqueID.flatMap(PushID.init) != nil)
        let push = try #require(fixture.device().pushes.first)
        #expect(push.id.text == result.id)
        #expect(push.request.body == Array(#"{"aps":{"content-changed":true}}"#.utf8))
        await fixture.stop()
        #expect(fixture.server.record.openConnections == 0)
    }

    @Test(arguments: [
        (APNsPushType.widgets, "widgets", "com.mygame.push-type.widgets", nil, nil),
        (.controls, "controls", "com.mygame.push-type.controls", "10", "0"),
        (.background, "background", "com.mygame", "5", nil as String?),
    ])
    func `each type of push has the fields that are documented`(
        channel: APNsPushType, type: String, topic: String, priority: String?,
        expiration: String?
    ) async throws {
        let fixture = try APNsFixture()
        #expect(try await fixture.send(channel).reaction == APNsReaction(.delivered))
        let request = try #require(fixture.device().pushes.first).request
        #expect(request.pushType == type && request.topic == topic)
        #expect(request.priority == priority && request.expiration == expiration)
        #expect(request.collapseID == nil)
        await fixture.stop()
    }

    @Test func `a form of one's own is sent as it is`() async throws {
        let fixture = try APNsFixture()
        let form = try APNsPushForm(
            .widgets, app: "com.mygame", priority: 5, lifetime: 3_600, collapseID: "reload")
        let push = try #require(
            APNsPush(token: APNsFixture.token, form: form, registeredAt: fixture.clock.wall))
        #expect(await fixture.pool.push(push).reaction == APNsReaction(.delivered))
        let taken = try #require(fixture.device().pushes.first)
        #expect(taken.request.priority == "5" && taken.request.collapseID == "reload")
        let expiration = try #require(taken.request.expiration.flatMap(Int64.init))
        #expect((3_000...3_600).contains(expiration - taken.at / 1_000))
        await fixture.stop()
    }

    private static func content(at timestamp: Int64) throws -> [UInt8] {
        try ActivityContent(Array(#"{"event":"update","contentState":{"goals":1}}"#.utf8))
            .payload(at: timestamp)
    }

    @Test func `a Live Activity is pushed its own content, with either priority`() async throws {
        let fixture = try APNsFixture()
        let form = try APNsPushForm(.liveactivity, app: APNsFixture.app)
        for priority in [10, 5] {
            var push = try #require(
                APNsPush(
                    token: APNsFixture.token, form: form.at(priority: priority),
                    registeredAt: fixture.clock.wall))
            push.payload = try Self.content(at: 1_800_000_010 - Int64(priority))
            let content = push.payload
            let result = await fixture.pool.push(push)
            #expect(result.reaction == APNsReaction(.delivered))
            let taken = try #require(fixture.device().pushes.last)
            let request = taken.request
            #expect(request.body == content && request.priority == String(priority))
            #expect(request.pushType == "liveactivity")
            #expect(request.topic == "com.mygame.push-type.liveactivity")
            #expect(!request.otherFields.contains("content-length"))
            let expiration = try #require(request.expiration.flatMap(Int64.init))
            #expect((28_000...28_800).contains(expiration - taken.at / 1_000))
        }
        await fixture.stop()
        #expect(fixture.server.record.violations.isEmpty)
    }

    // MARK: 400

    @Test func `what is wrong with the request is not repeated`() async throws {
        let (result, _) = try await result(.refused(.badTopic))
        #expect(result.reaction == APNsReaction(.giveUp, alert: .requestRefused))
        #expect(result.outcome == .answered(status: 400, reason: "BadTopic"))
        #expect(result.requests == 1)
    }

    @Test func `400 BadDeviceToken tries the other environment once`() async throws {
        let (result, _) = try await result(
            .refused(.badDeviceToken), push: { $0.mayTryOtherEnvironment = true })
        #expect(result.reaction == APNsReaction(.tryOtherEnvironment))
        #expect(result.requests == 1)
    }

    @Test func `400 TopicDisallowed stops the topic and no other`() async throws {
        let fixture = try APNsFixture()
        fixture.server.script(APNsFixture.token, [.refused(.topicDisallowed), .take])
        let stopped = APNsReaction(.stop(.topic), alert: .topicRefused)
        #expect(try await fixture.send().reaction == stopped)
        let next = try await fixture.send(to: "0b")
        #expect(next.reaction == stopped && next.outcome == nil && next.requests == 0)
        #expect(try await fixture.send(.controls).reaction == APNsReaction(.delivered))
        fixture.pool.resume()
        #expect(try await fixture.send(to: "0b").reaction == APNsReaction(.delivered))
        await fixture.stop()
    }

    // MARK: Connections

    @Test(arguments: [
        (APNsReason.idleTimeout, APNsWait.connection), (.serviceUnavailable, .service),
        (.shutdown, .service),
    ])
    func `another connection is opened after a reason that says so`(
        reason: APNsReason, wait: APNsWait
    ) async throws {
        let fixture = try APNsFixture(clock: FastClock(scale: 100))
        fixture.server.script(APNsFixture.token, [.refused(reason), .take])
        let result = try await fixture.send()
        #expect(result.reaction == APNsReaction(.retry(wait), connection: .replace))
        #expect(result.requests == 1)
        #expect(try await fixture.send().reaction == APNsReaction(.delivered))
        await fixture.stop()
        #expect(fixture.server.record.connections.count == 2)
    }

    @Test func `what a GOAWAY left out is sent again by another connection`() async throws {
        let (result, record) = try await result(
            .goAway(reason: "Shutdown", includesThis: false), .take)
        #expect(result.reaction == APNsReaction(.delivered))
        #expect(result.requests == 2)
        #expect(result.outcome == .answered(status: 200))
        #expect(record.connections.count == 2 && record.duplicates == 0)
    }

    @Test func `what a GOAWAY includes is answered`() async throws {
        let (result, _) = try await result(.goAway(reason: "Shutdown", includesThis: true))
        #expect(result.reaction == APNsReaction(.delivered) && result.requests == 1)
    }

    @Test func `a stream that was refused is sent again once`() async throws {
        let (mended, _) = try await result(.refuseStream, .take)
        #expect(mended.reaction == APNsReaction(.delivered) && mended.requests == 2)
        let (given, _) = try await result(.refuseStream, .refuseStream, .take)
        #expect(given.outcome == .failed(.notProcessed) && given.requests == 2)
        #expect(given.reaction == APNsReaction(.retry(.connection), connection: .replace))
    }

    @Test func `a stream that was reset is not sent again at once`() async throws {
        let (result, record) = try await result(.resetStream(isTaken: true))
        #expect(result.outcome == .failed(.streamReset) && result.requests == 1)
        #expect(result.reaction == APNsReaction(.retry(.connection)))
        #expect(record.connections.count == 1)
    }

    @Test func `a push whose connection was reset is not sent again at once`() async throws {
        let (result, record) = try await result(.resetConnection(isTaken: true))
        #expect(result.outcome == .failed(.connectionEnded) && result.requests == 1)
        #expect(result.reaction == APNsReaction(.retry(.connection), connection: .replace))
        #expect(record.connections.count == 1)
    }

    @Test func `silence ends at the deadline, and with it the connection`() async throws {
        let (result, _) = try await result(
            .silence(isTaken: false), pool: { $0.deadline = .milliseconds(800) })
        #expect(result.outcome == .failed(.timedOut) && result.requests == 1)
        #expect(result.reaction == APNsReaction(.retry(.connection), connection: .replace))
        #expect(result.milliseconds >= 700)
    }

    @Test func `silence about one push leaves a connection that answers others`() async throws {
        // Again where this machine was too slow for the others.
        try await eventually("the connection stays") {
            let fixture = try APNsFixture(pool: { $0.deadline = .seconds(1) })
            var reactions = [try await fixture.send(to: "ff").reaction]
            fixture.server.script(APNsFixture.token, [.silence(isTaken: false)])
            async let silent = fixture.send()
            for _ in 0..<1_000 where fixture.device().requests == 0 {
                try await Task.sleep(for: .milliseconds(1))
            }
            reactions.append(try await fixture.send(to: "0b").reaction)
            let last = try await silent.reaction
            reactions.append(try await fixture.send(to: "0c").reaction)
            await fixture.stop()
            return reactions.allSatisfy { $0 == APNsReaction(.delivered) }
                && last == APNsReaction(.retry(.connection))
                && fixture.server.record.connections.count == 1
        }
    }

    @Test func `a connection that says GOAWAY and falls silent holds nobody up`() async throws {
        let fixture = try APNsFixture()
        #expect(try await fixture.send(to: "ff").reaction == APNsReaction(.delivered))
        fixture.server.script(APNsFixture.token, [.silence(isTaken: false)])
        async let silent = fixture.send()
        try await eventually("the push is sent") { fixture.device().requests > 0 }
        fixture.server.goAway(reason: "Shutdown")
        try await eventually("GOAWAY has come") { fixture.pool.figures.connections == 0 }
        #expect(try await fixture.send(to: "0b").reaction == APNsReaction(.delivered))
        // The pool still waits for the push without an answer.
        #expect(fixture.pool.figures.underWay == 1)
        await fixture.server.stop()
        #expect(try await silent.outcome == .failed(.connectionEnded))
        await fixture.pool.drain()
    }

    @Test func `a slow answer is an answer`() async throws {
        let (result, _) = try await result(.slow(300, .taken))
        #expect(result.reaction == APNsReaction(.delivered) && result.milliseconds >= 290)
    }

    @Test func `where nobody listens a push is tried later`() async throws {
        let fixture = try APNsFixture()
        await fixture.server.stop()
        let result = try await fixture.send()
        #expect(result.outcome == .failed(.notConnected))
        #expect(result.reaction == APNsReaction(.retry(.connection), connection: .replace))
        await fixture.pool.drain()
    }

    // MARK: 403

    @Test func `a credential that is refused is not used again`() async throws {
        let fixture = try APNsFixture()
        fixture.server.script(APNsFixture.token, [.refused(.invalidProviderToken), .take])
        let stopped = APNsReaction(.stop(.credential), alert: .credentialRefused)
        #expect(try await fixture.send().reaction == stopped)
        let next = try await fixture.send(to: "0b", .controls)
        #expect(next.reaction == stopped && next.outcome == nil && next.requests == 0)
        fixture.pool.resume()
        #expect(try await fixture.send(to: "0b").reaction == APNsReaction(.delivered))
        await fixture.stop()
        #expect(fixture.server.record.providerTokens.count == 1)
    }

    @Test func `403 ExpiredProviderToken mints once and sends again`() async throws {
        let fixture = try APNsFixture()
        #expect(try await fixture.send().reaction == APNsReaction(.delivered))
        fixture.clock.advance(minutes: 30)
        fixture.server.script(APNsFixture.token, [.refused(.expiredProviderToken), .take])
        let result = try await fixture.send()
        #expect(result.reaction == APNsReaction(.delivered) && result.requests == 2)
        await fixture.stop()
        #expect(fixture.server.record.providerTokens.count == 2)
        #expect(fixture.server.record.violations.isEmpty)
    }

    @Test func `403 ExpiredProviderToken of a new token stops the credential`() async throws {
        let fixture = try APNsFixture()
        #expect(try await fixture.send().reaction == APNsReaction(.delivered))
        fixture.clock.advance(minutes: 30)
        fixture.server.script(APNsFixture.token, [.refused(.expiredProviderToken)])
        let result = try await fixture.send()
        #expect(result.reaction == APNsReaction(.stop(.credential), alert: .credentialRefused))
        #expect(result.requests == 2)
        await fixture.stop()
        #expect(fixture.server.record.providerTokens.count == 2)
    }

    @Test func `403 ExpiredProviderToken of a young token is the clock's fault`() async throws {
        let (result, record) = try await result(.refused(.expiredProviderToken))
        #expect(result.reaction == APNsReaction(.stop(.credential), alert: .credentialRefused))
        #expect(result.requests == 1 && record.providerTokens.count == 1)
    }

    @Test func `403 UnrelatedKeyIdInToken takes a new connection once`() async throws {
        let (mended, record) = try await result(.refused(.unrelatedKeyIDInToken), .take)
        #expect(mended.reaction == APNsReaction(.delivered) && mended.requests == 2)
        #expect(record.connections.count == 2)
        let (given, _) = try await result(.refused(.unrelatedKeyIDInToken))
        #expect(given.reaction == APNsReaction(.stop(.credential), alert: .credentialRefused))
        #expect(given.requests == 2)
    }

    // MARK: 410, 429

    @Test(arguments: [(-1 as Int64, true), (0, false), (1, false)])
    func `410 Unregistered is compared with the registration in milliseconds`(
        after: Int64, isLive: Bool
    ) async throws {
        let registeredAt: Int64 = 1_799_999_999_999
        let (result, _) = try await result(
            .refused(.unregistered, timestamp: registeredAt + after),
            push: { $0.registeredAt = registeredAt })
        #expect(result.reaction == APNsReaction(isLive ? .retry(.device) : .dropAddress))
        #expect(result.requests == 1)
    }

    @Test func `429 TooManyProviderTokenUpdates uses the older token`() async throws {
        let fixture = try APNsFixture(clock: FastClock(scale: 100))
        #expect(try await fixture.send().reaction == APNsReaction(.delivered))
        fixture.clock.advance(minutes: 30)
        fixture.server.script(
            APNsFixture.token,
            [.refused(.expiredProviderToken), .refused(.tooManyProviderTokenUpdates), .take])
        let result = try await fixture.send()
        #expect(
            result.reaction == APNsReaction(.retry(.connection), providerToken: .useOlder))
        #expect(try await fixture.send().reaction == APNsReaction(.delivered))
        await fixture.stop()
        #expect(fixture.server.record.providerTokens.count == 2)
    }
}
