import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

extension ProcessTests {
    /// A test with real data, end to end: people who follow packages are notified of a
    /// distribution's security updates, each of exactly the packages they follow.
    @Suite struct PackageTests {
        static let followerCount = 20_000
        static let streamCount = 2_000

        @Test func everyFollowerIsToldOfItsPackagesAndOfNothingElse() throws {
            let seed: UInt64 = 20_261_121
            print("packages: seed \(seed)")
            raiseFileLimit()
            var clock = PhaseClock()
            let lists = try PackageLists()
            let changes = PackageChange.all(lists)
            var followers = Self.followers(lists, changes, seed: seed)
            let gateway = try GatewayProcess()
            let backend = try gateway.token(
                app: Follower.app, scope: "catalog:write changes:write clients:write")
            let put = try gateway.http().request(
                "PUT", "/v1/apps/\(Follower.app)/catalog", token: backend,
                headers: [("Content-Type", "application/yaml")], body: Follower.catalog)
            try #require(put.status == 201, "\(put.text)")
            clock.end("lists")
            followers = try PackageRun.register(followers, gateway, backend)
            clock.end("registrations")
            var run = try PackageRun(gateway, followers, streamCount: Self.streamCount)
            clock.end("opening streams")
            let head = try run.post(changes, backend)
            clock.end("posts")
            try run.readStreams(until: head)
            clock.end("streams")
            try run.pollTheOthers()
            clock.end("polls")
            let expected = expectedNotifications(changes, followers)
            let told = run.told
            let wrong = followers.filter { expected[$0.name] != told[$0.name] }
            #expect(
                wrong.isEmpty,
                """
                \(wrong.count) devices heard something else; the first:
                \(wrong.prefix(3).map { follower in
                    """
                    \(follower) expected \(expected[follower.name]?.sorted() ?? []), \
                    heard \(told[follower.name]?.sorted() ?? [])
                    """
                }.joined(separator: "\n"))
                \(gateway.standardErrorTail)
                """)
            #expect(run.repeated == [], "a package changed once and was said twice on a stream")
            let keys = try gateway.http().request("GET", "/.well-known/jwks.json").text
            let verified = try SignatureCheck.verify(
                run.notifications, keys: keys, app: Follower.app)
            let forged = run.notifications.prefix(1).map(Self.forged)
            #expect(throws: TestFailure.self, "the check cannot fail") {
                try SignatureCheck.verify(forged, keys: keys, app: Follower.app)
            }
            clock.end("signatures")
            let count = expected.values.reduce(0) { $0 + $1.count }
            print("packages: \(changes.count) changes, \(count) statements expected, \(verified)")
            print("packages: seconds:", clock.phases.joined(separator: ", "))
            #expect(count > Self.followerCount / 2, "the lists differ too little to prove anything")
            #expect(gateway.terminate() == .status(0))
        }

        /// Returns the same notification with one character of its signature changed.
        private static func forged(_ notification: String) -> String {
            var characters = Array(notification)
            let place = characters.count - 20
            characters[place] = characters[place] == "A" ? "B" : "A"
            return String(characters)
        }

        private static func followers(
            _ lists: PackageLists, _ changes: [PackageChange], seed: UInt64
        ) -> [Follower] {
            var generator = SplitMix64(seed: seed)
            let all = lists.main.keys.sorted()
            let updated = changes.map(\.package)
            let sections = Set(lists.main.values.map(\.section)).sorted()
            return (0..<followerCount).map {
                Follower($0, all: all, updated: updated, sections: sections, &generator)
            }
        }
    }
}

/// Measures the parts of a long test, for information only; no result depends on it.
struct PhaseClock {
    private var last = ContinuousClock.now
    private(set) var phases: [String] = []

    mutating func end(_ phase: String) {
        let now = ContinuousClock.now
        phases.append("\(phase) \((now - last).components.seconds)")
        last = now
    }
}

/// Raises the limit of open files for this process and the daemon it starts.
func raiseFileLimit() {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = min(limit.rlim_max, 65_536)
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
}
