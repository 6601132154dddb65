import GatewayTestSupport
import Synchronization
import Testing

@testable import GatewayServer

/// The requests of a node to the leader.
@Suite struct ClusterLinkTests {
    /// Returns when its task is cancelled, as a request that nobody answers.
    private static func unanswered() async -> Int {
        while !Task.isCancelled { try? await Task.sleep(for: .milliseconds(10)) }
        return 1
    }

    @Test(.timeLimit(.minutes(30))) func `a request that nobody answers ends with the lease`()
        async
    {
        let holds = Mutex(true)
        let answer = await ClusterLink.result(while: { holds.withLock { $0 } }) {
            // Only once it is under way.
            holds.withLock { $0 = false }
            return await Self.unanswered()
        }
        #expect(answer == nil)
    }

    @Test(.timeLimit(.minutes(30))) func `a request that is answered ends with its answer`() async {
        let answer = await ClusterLink.result(while: { true }) { 2 }
        #expect(answer == 2)
    }
}
