import GatewayTestSupport

extension Campaign {
    /// Records that the log is about to lose its end: what it held is not sent again, for that would
    /// tell clients of it anew.
    func expectLostLog() {
        recorder.add(.logLost)
        stage.update { $0.accepted = [] }
    }

    /// Waits for the next post that is answered 202 from now on. Returns the seconds that it took.
    func awaitAcceptance() -> Double {
        let start = recorder.now
        let came = stage.wait(seconds: Patience.seconds) { $0.lastAccepted > start ? true : nil }
        recorder.require(came == true, "no post was accepted after a fault ended")
        return recorder.now - start
    }

    /// Posts a change at each of these gateways until it is taken, because the load may be waiting
    /// for one that does not answer. Returns the time at which the first took it.
    func firstAcceptance(at gateways: [GatewayProcess]) throws -> Double {
        let (batch, subjects) = openBatch([.pulse])
        let first = TestHTTPMonitor(Double.infinity)
        try onThreads(gateways.count) { [self] index in
            let http = gateways[index].http(timeoutSeconds: Self.requestTimeout)
            _ = try postUntilAccepted(batch, subjects, on: http, seconds: Patience.seconds)
            first.update { $0 = min($0, recorder.now) }
        }
        return first.update { $0 }
    }

    /// Requires that SIGTERM ended the gateway in order.
    func requireOrderly(_ exit: GatewayProcessExit?) {
        recorder.require(exit == .status(0), "SIGTERM ended it with \(String(describing: exit))")
    }

    /// Requires that the gateway says that it lives.
    func requireLive(_ when: String) {
        recorder.require(gateway.status(of: "/livez") == 200, "/livez is not 200 \(when)")
    }
}
