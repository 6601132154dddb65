import Foundation
import Synchronization
import TimelineRuntime
import WidgetModel

/// The tasks of one test. Intents consist of values only, so they look the list up by its name.
final class TapList: Sendable {
    struct State {
        var isDone = false
        var failure: String?
        var performed = 0
        var performedBy: [IntentProcess] = []
        var builds = 0
        var onPerform: (@Sendable () async -> Void)?
        var onBuild: (@Sendable () async -> Void)?
    }

    static let all = Mutex<[String: TapList]>([:])
    /// The process that runs, where a test plays several.
    @TaskLocal static var process = IntentProcess.widgetExtension
    let state = Mutex(State())

    static func named(_ name: String) -> TapList {
        all.withLock { lists in
            if let list = lists[name] { return list }
            let list = TapList()
            lists[name] = list
            return list
        }
    }

    /// Performs the tap of an intent, and throws the failure that the test has set.
    func tap() async throws {
        await state.withLock { $0.onPerform }?()
        try state.withLock { state in
            state.performed += 1
            state.performedBy.append(Self.process)
            if let failure = state.failure { throw Refused(errorDescription: failure) }
            state.isDone.toggle()
        }
    }
}

struct Refused: LocalizedError {
    let errorDescription: String?
}

struct TapIntent: AppIntent {
    static let title: LocalizedStringResource = "Complete"
    @Parameter(title: "List", default: "") var list: String

    init() {}

    init(_ list: String) { self.list = list }

    func perform() async throws -> some IntentResult {
        try await TapList.named(list).tap()
        return .result()
    }
}

/// An intent like `TapIntent` that only the app can perform.
struct AppTapIntent: LiveActivityIntent {
    static let title: LocalizedStringResource = "Complete, in the app"
    @Parameter(title: "List", default: "") var list: String

    init() {}

    init(_ list: String) { self.list = list }

    func perform() async throws -> some IntentResult {
        try await TapList.named(list).tap()
        return .result()
    }
}

/// The app as its extension reaches it: only values that can be serialized pass between the two.
final class TapApp: AppProcess {
    private let runtime: WidgetDeclarations
    let opened = Mutex<[WidgetActivity]>([])
    let foregrounds = Mutex<[Bool]>([])

    init(_ intents: [any AppIntent.Type]) throws {
        runtime = try WidgetDeclarations([], intents: intents)
    }

    func perform(_ call: IntentCall, inForeground: Bool) async throws {
        foregrounds.withLock { $0.append(inForeground) }
        guard let received = IntentCall(try JSONValue(parsing: call.json.serialized)) else {
            throw Refused(errorDescription: "unreadable")
        }
        try await TapList.$process.withValue(.app) { try await runtime.perform(received) }
    }

    func open(_ activity: WidgetActivity) async { opened.withLock { $0.append(activity) } }
}

struct TapEntry: TimelineEntry {
    let date: Date
    let list: String
    let isDone: Bool
}

struct TapProvider: AsyncTimelineProvider {
    let list: String
    func placeholder(in context: Context) -> TapEntry {
        TapEntry(date: .distantPast, list: list, isDone: false)
    }
    func snapshot(in context: Context) async -> TapEntry { placeholder(in: context) }
    func timeline(in context: Context) async -> Timeline<TapEntry> {
        await TapList.named(list).state.withLock { $0.onBuild }?()
        let isDone = TapList.named(list).state.withLock { state in
            state.builds += 1
            return state.isDone
        }
        return Timeline(
            entries: [TapEntry(date: .distantPast, list: list, isDone: isDone)], policy: .never)
    }
}

extension WidgetNode {
    var texts: [String] {
        if case .text(let text) = content { [text] } else { parts.flatMap(\.texts) }
    }
}
