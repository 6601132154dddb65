import Foundation
import Synchronization
import TimelineClient

/// What the tasks of one test are; intents are made of values alone, so they find it by its name.
final class TapList: Sendable {
    struct State {
        var isDone = false
        var failure: String?
        var performed = 0
        var builds = 0
        var onPerform: (@Sendable () async -> Void)?
    }

    static let all = Mutex<[String: TapList]>([:])
    let state = Mutex(State())

    static func named(_ name: String) -> TapList {
        all.withLock { lists in
            if let list = lists[name] { return list }
            let list = TapList()
            lists[name] = list
            return list
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
        let tasks = TapList.named(list)
        await tasks.state.withLock { $0.onPerform }?()
        try tasks.state.withLock { state in
            state.performed += 1
            if let failure = state.failure { throw Refused(errorDescription: failure) }
            state.isDone.toggle()
        }
        return .result()
    }
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
        switch content {
        case .text(let text): [text]
        case .stack(_, let parts): parts.flatMap(\.texts)
        case .button(_, let label), .toggle(_, _, let label), .link(_, let label),
            .gauge(_, let label):
            label.texts
        case .date, .image, .spacer, .redacted: []
        }
    }
}
