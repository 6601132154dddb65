import Testing
import WidgetModel

@testable import GatewayCore

/// Pushes to browsers, and through FCM: with the content of webhooks, and the budgets of devices.
@Suite struct BrowserPushTests {
    private func browser(_ name: String = "1") -> DeliveryAddress {
        .webPush(.init(endpoint: "https://push.example/\(name)", p256dh: "p", auth: "a"))
    }

    @Test func `a push says again what the client may not have read`() throws {
        var small = try SmallPushScheduler(
            device(["1", "2"], delivery: [browser()]), adjust: { $0.interval = 1 })
        try small.push()
        small.wait(1)
        // A service replaces a push that it has not delivered by the next one.
        let second = try small.order(changing: "2")
        #expect(words(second.content).contains("k(a=1)"))
        #expect(words(second.content).contains("k(a=2)"))
        try small.finish(second)
        small.acknowledge()
        small.wait(1)
        let third = try small.order(changing: "2")
        #expect(words(third.content) == "k(a=2)")
    }

    @Test func `a push counts against the budget, and a rejected one does not`() throws {
        var small = try SmallPushScheduler(device(delivery: [browser()]))
        try small.push(.retry(.atOnce))
        try small.finish(small.orders().first)
        try small.change("1")
        let next = try small.next(after: PushBudget.Kind.intervalDefault)
        #expect(next.address == browser() && next.sorts == [.timelines])
    }

    @Test func `a subscription belongs to the client that registered it last`() throws {
        var small = try SmallPushScheduler(
            device(named: "old", delivery: [browser()]), device(named: "new", delivery: [browser()])
        )
        let dropped = small.scheduler.takeActions().compactMap {
            if case .drop(let key, _) = $0 { key.client } else { nil }
        }
        #expect(dropped == ["old"])
        try small.change("1")
        #expect(small.orders().map(\.client.client) == ["new"])
    }

    @Test func `an app without a key gets no pushes until it has one`() throws {
        var small = try SmallPushScheduler(
            device(delivery: [browser()]), adjust: { $0.webPushApps = [] })
        try small.change("1")
        small.expectSilence()
        var terms = small.terms
        terms.webPushApps = ["app"]
        small.scheduler.configure(
            terms, mended: [.init(app: "app", .webPush)], liftsStops: false, now: small.now)
        small.wait(DeliveryAttempts.grace)
        #expect(small.orders().count == 1)
    }

    @Test(
        arguments: [
            (201, nil, APNsReaction(.delivered)), (200, nil, APNsReaction(.delivered)),
            (404, nil, APNsReaction(.dropAddress)), (410, nil, APNsReaction(.dropAddress)),
            (400, nil, APNsReaction(.giveUp, alert: .subscriptionRefused)),
            (401, nil, APNsReaction(.retry(.device), alert: .subscriptionRefused)),
            (403, 5, APNsReaction(.retry(.device), alert: .subscriptionRefused)),
            (413, nil, APNsReaction(.giveUp, alert: .subscriptionRefused)),
            (406, 60, APNsReaction(.retry(.requested(60)))),
            (406, nil, APNsReaction(.retry(.device))),
            (408, nil, APNsReaction(.retry(.device))),
            (425, 1, APNsReaction(.retry(.requested(1)))),
            (429, 30, APNsReaction(.retry(.requested(30)))),
            (429, nil, APNsReaction(.retry(.device))),
            (500, nil, APNsReaction(.retry(.device))),
            (503, 7, APNsReaction(.retry(.requested(7)))),
            (302, nil, APNsReaction(.giveUp, alert: .subscriptionRefused)),
        ] as [(Int, Int64?, APNsReaction)])
    func `a response has its reaction`(
        status: Int, retryAfter: Int64?, reaction: APNsReaction
    ) {
        #expect(APNsReaction(toWebPush: status, retryAfter: retryAfter) == reaction)
    }

    @Test(arguments: [
        (200, "", APNsReaction(.delivered)),
        (404, "UNREGISTERED", APNsReaction(.dropAddress)),
        (400, "INVALID_ARGUMENT", APNsReaction(.giveUp, alert: .requestRefused)),
        (403, "SENDER_ID_MISMATCH", APNsReaction(.retry(.device), alert: .pairingRefused)),
        (401, "THIRD_PARTY_AUTH_ERROR", APNsReaction(.retry(.device), alert: .pairingRefused)),
        (429, "QUOTA_EXCEEDED", APNsReaction(.retry(.requested(9)))),
        (503, "UNAVAILABLE", APNsReaction(.retry(.requested(9)))),
        (500, "INTERNAL", APNsReaction(.retry(.requested(9)))),
        (401, "", APNsReaction(.stop(.credential), alert: .credentialRefused)),
        (403, "", APNsReaction(.stop(.credential), alert: .credentialRefused)),
        (404, "", APNsReaction(.stop(.credential), alert: .credentialRefused)),
        (408, "", APNsReaction(.retry(.requested(9)))),
        (425, "", APNsReaction(.retry(.requested(9)))),
        (400, "", APNsReaction(.giveUp, alert: .requestRefused)),
        (302, "", APNsReaction(.giveUp, alert: .answerUnknown)),
    ])
    func `a response of FCM has its reaction`(status: Int, code: String, reaction: APNsReaction) {
        let detail = #"{"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "#
        let details = #"[{"@type": "other"}, \#(detail)"errorCode": "\#(code)"}]"#
        let body =
            #"{"error": {"status": "NOT_FOUND", "details": \#(code.isEmpty ? "[]" : details)}}"#
        let error = FCMError(body: Array(body.utf8))
        #expect(error.reason == (code.isEmpty ? "NOT_FOUND" : code))
        #expect(APNsReaction(toFCM: status, error, retryAfter: 9) == reaction)
    }

    @Test(
        arguments: [
            (
                #""details": [{"fieldViolations": [{"field": "message.token"}]}]"#,
                APNsReaction(.dropAddress)
            ),
            (
                #""message": "The registration token is not a valid FCM registration token""#,
                APNsReaction(.dropAddress)
            ),
            (
                #""details": [{"fieldViolations": [{"field": "message.data"}]}]"#,
                APNsReaction(.giveUp, alert: .requestRefused)
            ),
            (
                #""message": "Message too big""#,
                APNsReaction(.giveUp, alert: .requestRefused)
            ),
        ])
    func `only an invalid token is dropped, not an invalid request`(
        members: String, reaction: APNsReaction
    ) {
        let error = FCMError(body: Array(#"{"error": {\#(members)}}"#.utf8))
        #expect(APNsReaction(toFCM: 400, error, retryAfter: nil) == reaction)
    }

    @Test func `a token endpoint that fails for a while stops nothing`() {
        for status in [408, 425, 429, 500, 503] {
            let reaction = APNsReaction(toTokenRequest: status, retryAfter: 8)
            #expect(reaction == APNsReaction(.retry(.requested(8))), "\(status)")
        }
        for status in [400, 401, 403, 404] {
            let reaction = APNsReaction(toTokenRequest: status, retryAfter: nil)
            let stop = APNsReaction(.stop(.credential), alert: .credentialRefused)
            #expect(reaction == stop, "\(status)")
        }
        #expect(APNsReaction(toTokenRequest: 200, retryAfter: nil).verdict == .retry(.device))
    }

    @Test func `what is no error of FCM says nothing`() {
        let long = String(repeating: "A", count: 65)
        for body in [
            "", "[]", #"{"error": 7}"#, "<html>", #"{"error": "a b"}"#, #"{"error": "\#(long)"}"#,
            #"{"error": {"status": "", "details": [{"errorCode": "A\\n"}]}}"#,
        ] {
            #expect(FCMError(body: Array(body.utf8)).reason == nil)
        }
        #expect(
            FCMError(body: Array(#"{"error": "invalid_grant"}"#.utf8)).reason == "invalid_grant")
    }

    @Test func `a requested wait is kept, and grows`() {
        let wait = APNsWait.requested(30)
        #expect(wait.milliseconds(failures: 0, urgency: .high, random: 0) == 30_000)
        #expect(wait.milliseconds(failures: 2, urgency: .high, random: 0) == 120_000)
    }
}
