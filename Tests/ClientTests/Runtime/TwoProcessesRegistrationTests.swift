import Testing
import WidgetModel

@testable import TimelineGatewayClient
@testable import TimelineRuntime
@testable import WidgetViews

/// Two processes of one app that share a client id, each with kinds of its own, and a gateway that
/// refuses whoever assumes another registration than the current one.
@Suite struct TwoProcessesRegistrationTests {
    private struct World {
        struct Process {
            let kind: String
            var engine: ReloadEngine
            var pending: [EngineAction] = []
            /// The current registration as the process read it, until it has registered.
            var read: RegistrationInForce?
            var sharedRegistered: ClientRegistration?
            var widgets: [WidgetInfo] = []
        }

        var random: SplitMix64
        var processes: [Process] = []
        var inForce: JSONObject?
        var now = Duration.zero
        var head: UInt64 = 1
        var requests = 0

        init(seed: UInt64) {
            random = SplitMix64(seed: seed)
            for kind in ["app", "extension"] {
                let engine = ReloadEngine(state: EngineState(), desired: registration([]), seed: 1)
                processes.append(Process(kind: kind, engine: engine))
                configure(processes.count - 1)
                hand(.started([]), to: processes.count - 1)
            }
        }

        var digest: String { "\(inForce.hashValue)" }

        mutating func hand(_ event: EngineEvent, to index: Int) {
            for action in processes[index].engine.handle(event, now: now)
            where action != .save && action != .saveBudgets {
                processes[index].pending.append(action)
            }
        }

        /// Lets a person place widgets of a process's kind and change the language.
        mutating func configure(_ index: Int) {
            let kind = processes[index].kind
            processes[index].widgets = (0..<Int.random(in: 0...2, using: &random)).map {
                WidgetInfo(
                    kind: kind, family: .systemSmall, configuration: ["n": .single("\($0)")])
            }
            var desired = registration(processes[index].widgets)
            desired.attributes = ["language": [Bool.random(using: &random) ? "en" : "de"]]
            hand(.configurationChanged(desired), to: index)
        }

        mutating func patch(_ patch: JSONValue, _ index: Int) {
            inForce = inForce.flatMap { JSONValue.object($0).merging(patch: patch).objectValue }
            head += 1
            hand(.patched(cursor(head)), to: index)
        }

        mutating func obey(_ index: Int) {
            guard !processes[index].pending.isEmpty else { return }
            let place = Int.random(in: processes[index].pending.indices, using: &random)
            let action = processes[index].pending.remove(at: place)
            let isMismatch = processes[index].engine.digest != digest
            let refusal = EngineEvent.Rejection.otherRegistration(digest: digest)
            requests += 1
            switch action {
            case .register(let wanted) where processes[index].engine.registered == nil:
                inForce = wanted.json(maskingTokens: false).objectValue
                head += 1
                hand(.registered(cursor(head), digest: digest), to: index)
            case .register where inForce == nil, .reconcile where inForce == nil:
                hand(.registrationFailed(.unknownClient), to: index)
            case .register(let wanted):
                let last = processes[index].engine.registered ?? wanted
                patch(wanted.patch(since: last, completed: wanted), index)
            case .reconcile(let wanted):
                guard let read = processes[index].read else {
                    var shown = inForce ?? JSONObject()
                    shown["digest"] = .string(digest)
                    processes[index].read = RegistrationInForce(.object(shown))
                    // Others may register before this process does.
                    processes[index].pending.append(action)
                    return
                }
                processes[index].read = nil
                var shared = wanted
                shared.widgets = []
                let missing = read.patch(
                    to: wanted, kinds: [processes[index].kind],
                    includesShared: shared != processes[index].sharedRegistered)
                guard let missing else {
                    return hand(.registered(nil, digest: read.digest), to: index)
                }
                processes[index].sharedRegistered = shared
                patch(missing, index)
            case .connect(let attempt, _) where inForce == nil:
                hand(.ended(attempt: attempt, .refused(.unknownClient)), to: index)
            case .connect(let attempt, _) where isMismatch:
                hand(.ended(attempt: attempt, .refused(refusal)), to: index)
            case .connect(let attempt, let since):
                hand(.opened(attempt: attempt, resumedFrom: since), to: index)
                hand(.ended(attempt: attempt, .polled), to: index)
            case .acknowledge:
                hand(isMismatch ? .acknowledgementFailed(refusal) : .acknowledged, to: index)
            case .build(let info):
                requests -= 1
                hand(.rebuilt(info, milliseconds: 1, reloadDate: nil), to: index)
            case .recommend, .save, .saveBudgets: break
            }
        }

        /// Lets each process do all it has to do and poll again after its interval.
        mutating func settle(rounds: Int) {
            for round in 0...rounds {
                while processes.contains(where: { !$0.pending.isEmpty }) {
                    obey(Int.random(in: processes.indices, using: &random))
                }
                guard round < rounds else { return }
                now += .seconds(3_600)
                for index in processes.indices { hand(.woke, to: index) }
            }
        }

        /// The widgets of the current registration, as text.
        var registered: Set<String> {
            Set((inForce?["widgets"]?.arrayValue ?? []).map(\.text))
        }

        var wanted: Set<String> {
            Set(
                processes.flatMap { registration($0.widgets).widgets }.map(\.json.text))
        }
    }

    @Test(arguments: 0..<200)
    func `they converge on what both want, and then register no more`(seed: UInt64) {
        var world = World(seed: seed)
        for _ in 0..<60 {
            let index = Int.random(in: world.processes.indices, using: &world.random)
            switch Int.random(in: 0..<20, using: &world.random) {
            case 0: world.configure(index)
            // A backup is restored, from another time or empty.
            case 1: world.inForce?["widgets"] = .array([])
            case 2: world.inForce = nil
            case 3:
                world.now += .seconds(1_000)
                world.hand(.woke, to: index)
            default: world.obey(index)
            }
        }
        world.requests = 0
        world.settle(rounds: 8)
        #expect(world.registered == world.wanted)
        for process in world.processes {
            #expect(process.engine.digest == world.digest)
        }
        // Each round has two polls, and the rest is from before the processes agreed.
        #expect(world.requests <= 2 * 9 + 30, "\(world.requests) requests")
        let inForce = world.inForce
        world.requests = 0
        world.settle(rounds: 4)
        #expect(world.requests <= 2 * 5)
        #expect(world.inForce == inForce)
    }
}

@Suite struct RegistrationInForceTests {
    private static let own = ClientRegistration(
        platform: "iOS", osVersion: OSVersion("26.1"), attributes: ["theme": ["dark"]],
        widgets: [ConfiguredWidget(kind: "k", family: "systemSmall")],
        recommendations: [RecommendationSet(kind: "k", items: [], builtAt: "x")],
        delivery: [.stream, .apns(.init(pushType: "widgets", token: "0123456789abcdef"))])

    private static func patch(
        kinds: Set<String> = ["k"], includesShared: Bool = true,
        _ change: (inout ClientRegistration) -> Void
    ) -> JSONValue? {
        var inForce = own
        change(&inForce)
        return RegistrationInForce(inForce.json(maskingTokens: true))
            .patch(to: own, kinds: kinds, includesShared: includesShared)
    }

    @Test func `nothing differs where others have more and tokens are masked`() {
        #expect(Self.patch { $0.recommendations[0].builtAt = nil } == nil)
        let patch = Self.patch {
            $0.attributes["account"] = ["42"]
            $0.widgets.append(ConfiguredWidget(kind: "other", family: "systemSmall"))
            $0.recommendations.append(RecommendationSet(kind: "other", items: []))
            $0.controls = [PlacedControl(kind: "c", id: "1")]
            $0.delivery.append(.apns(.init(pushType: "background", token: "ff")))
        }
        #expect(patch == nil)
    }

    @Test func `what is of its own kinds is replaced, and nothing else`() {
        let other = ConfiguredWidget(kind: "other", family: "systemSmall", count: 2)
        let gone = ConfiguredWidget(kind: "gone", family: "systemSmall")
        let patch = Self.patch(kinds: ["k", "gone"]) {
            $0.widgets = [other, gone]
            $0.recommendations = [RecommendationSet(kind: "other", items: [], builtAt: "y")]
        }
        #expect(
            patch == [
                "widgets": .array([other.json, Self.own.widgets[0].json]),
                "recommendations": [
                    ["kind": "other", "items": []], ["kind": "k", "items": [], "builtAt": "x"],
                ],
            ])
    }

    @Test func `each process ends its own activities`() {
        var (own, inForce) = (Self.own, Self.own)
        own.activities = [.init(type: "A", id: "2")]
        let token = DeliveryAddress.apns(.init(pushType: "liveactivity", token: "0a"))
        inForce.activities = [
            .init(type: "A", id: "1"), .init(type: "B", id: "3"),
            .init(type: "B", id: "4", delivery: token),
        ]
        let patch = RegistrationInForce(inForce.json(maskingTokens: true))
            .patch(to: own, kinds: ["A"], includesShared: false)?.objectValue
        let ids = patch?["activities"]?.arrayValue?.map { $0.objectValue?["id"]?.stringValue }
        #expect(ids == ["3", "2"], "a masked token cannot be registered again")
    }

    @Test func `what is shared is registered where it lacks, unless it was before`() {
        func lacking(_ registration: inout ClientRegistration) {
            registration.attributes = [:]
            registration.delivery = [.stream]
            registration.osVersion = nil
        }
        let patch = Self.patch(lacking)?.objectValue
        #expect(patch?.members.map(\.name) == ["osVersion", "delivery", "attributes"])
        #expect(patch?["delivery"] == Self.own.json(maskingTokens: false).objectValue?["delivery"])
        #expect(Self.patch(includesShared: false, lacking) == nil)
    }
}
