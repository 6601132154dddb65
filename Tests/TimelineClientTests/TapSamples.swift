import Foundation
import Synchronization
import TimelineClient
import WidgetModel

/// What the tasks of one test are; intents are made of values alone, so they find it by its name.
final class TapList: Sendable {
    struct State {
        var isDone = false
        var failure: String?
        var performed = 0
        var performedBy: [IntentProcess] = []
        var builds = 0
        var onPerform: (@Sendable () async -> Void)?
    }

    static let all = Mutex<[String: TapList]>([:])
    /// Which process runs, where one plays several.
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

    /// What the intents do.
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

/// The same, but only the app can do it.
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

/// The app, as its extension reaches it: only what can be written goes from one to the other.
final class TapApp: AppProcess {
    private let runtime: WidgetRuntime
    let opened = Mutex<[WidgetActivity]>([])
    let foregrounds = Mutex<[Bool]>([])

    init(_ intents: [any AppIntent.Type]) throws {
        runtime = try WidgetRuntime([], intents: intents)
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
        let isDone = TapList.named(list).state.withLock { state in
            state.builds += 1
            return state.isDone
        }
        return Timeline(
            entries: [TapEntry(date: .distantPast, list: list, isDone: isDone)], policy: .never)
    }
}

extension WidgetNode {
    /// Every text in it.
    var texts: [String] {
        if case .text(let text) = content { [text] } else { parts.flatMap(\.texts) }
    }
}
