import NIOCore
import NIOHTTP1
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayServer

/// Compares the machine with a list of requests that is evaluated again at each event.
@Suite struct HTTPConnectionMachineModelTests {
    /// An event of an HTTP/1.1 connection.
    private enum Event: CaseIterable {
        case head, lastHead, body, end, readCompleted, written, filled, wanted, writable, unwritable
        case garbage, inputClosed, quiesce
    }

    /// A connection as plain lists, without states.
    private struct Model {
        struct Request {
            let isLast: Bool
            var isWhole = false
            /// Whether its rest will never arrive.
            var isBroken = false
            var isStarted = false
            var isDone = false
        }

        var requests: [Request] = []
        var hasRequest: Bool { !requests.isEmpty }
        var isWritable = true
        var isFull = false
        var isGarbage = false
        var isInputClosed = false
        var isStopping = false
        var isOver = false

        var isInputOver: Bool { isGarbage || isInputClosed || isOver }
        var isResponding: Bool { requests.contains { $0.isStarted && !$0.isDone } }
        var isIncomplete: Bool { requests.last.map { !$0.isWhole && !$0.isBroken } ?? false }
        var waiting: Int? { requests.firstIndex { !$0.isStarted && !$0.isBroken } }

        /// Returns whether the event may come next on a connection.
        func allows(_ event: Event) -> Bool {
            switch event {
            case .head, .lastHead: !isInputOver && !isIncomplete
            case .body, .end: !isInputOver && isIncomplete
            case .readCompleted: !isInputOver
            case .written: isResponding && !isOver
            case .filled: isResponding && isIncomplete && requests.last?.isStarted == true
            case .wanted: isFull
            case .writable: !isWritable
            case .unwritable: isWritable
            case .garbage: !isGarbage
            case .inputClosed: !isInputClosed
            case .quiesce: !isStopping
            }
        }

        /// Applies an event; returns the effects: the requests that start, and the end.
        mutating func apply(_ event: Event) -> [String] {
            if isOver { return [] }
            switch event {
            case .head: requests.append(Request(isLast: false))
            case .lastHead: requests.append(Request(isLast: true))
            case .body, .filled, .wanted: break
            case .end: requests[requests.count - 1].isWhole = true
            case .readCompleted: return isIncomplete ? advance() : []
            case .written: return finishResponse()
            case .writable: isWritable = true
            case .unwritable: isWritable = false
            case .garbage:
                if !hasRequest { return over("refuse") }
                isGarbage = true
                breakOff()
            case .inputClosed:
                if !hasRequest { return over("close") }
                isInputClosed = true
                breakOff()
            case .quiesce:
                if !hasRequest { return over("close") }
                isStopping = true
            }
            isFull = event == .filled || isFull && ![.wanted, .end].contains(event)
            switch event {
            case .head, .lastHead, .body, .filled, .wanted, .unwritable: return []
            default: return advance()
            }
        }

        private mutating func breakOff() {
            isFull = false
            if isIncomplete { requests[requests.count - 1].isBroken = true }
        }

        private mutating func finishResponse() -> [String] {
            guard let index = requests.firstIndex(where: { $0.isStarted && !$0.isDone }) else {
                return []
            }
            requests[index].isDone = true
            isFull = false
            if !requests[index].isWhole { return over("close") }
            return requests[index].isLast ? over("close output") : advance()
        }

        private mutating func advance() -> [String] {
            guard hasRequest, !isOver, !isResponding, isWritable else { return [] }
            if let index = waiting {
                requests[index].isStarted = true
                return ["respond /\(index)" + (requests[index].isWhole ? "" : "…")]
            }
            if isGarbage { return over("refuse") }
            if isStopping { return over("close") }
            return isInputClosed ? over("close output") : []
        }

        private mutating func over(_ end: String) -> [String] {
            isOver = true
            isFull = false
            return [end]
        }

        var mayRead: Bool { isOver || waiting == nil && !isFull }
    }

    /// A machine and its model.
    private struct Pair {
        var machine = HTTPConnectionMachine(
            isHTTP2: false, offersStreams: false, settings: ConnectionSettings())
        var model = Model()
        /// Whether a route reads the body of the request received last.
        var hasBody = false
        /// Whether the channel waits until the machine reads on.
        var isReadHeld = false
        var history: [Event] = []

        /// Applies an event to both; returns whether they agree.
        mutating func apply(_ event: Event) -> Bool {
            history.append(event)
            let count = model.requests.count
            let expected = model.apply(event)
            var actions: [String] = []
            for action in perform(event, count) {
                switch action {
                case .respond(let request, let isWhole):
                    actions.append("respond \(request.head.uri)" + (isWhole ? "" : "…"))
                    hasBody = !isWhole
                case .refuse: actions.append("refuse")
                case .close, .linger: actions.append("close")
                case .closeOutput: actions.append("close output")
                case .forwardBody where !hasBody: actions.append("a body without a route")
                case .endBody:
                    if !hasBody { actions.append("the end of no body") }
                    hasBody = false
                case .read:
                    if !model.mayRead { actions.append("a read that must wait") }
                    isReadHeld = false
                default: break
                }
            }
            // A channel asks to read at the end of each read.
            if event == .readCompleted { isReadHeld = !machine.readRequested() }
            var copy = machine
            let mayRead = copy.readRequested()
            return actions == expected && mayRead == model.mayRead
                && machine.isResponding == model.isResponding
                && (machine.isResponding || !hasBody)
                && (!isReadHeld || !model.mayRead || model.isOver)
        }

        private mutating func perform(
            _ event: Event, _ count: Int
        ) -> [HTTPConnectionMachine.Action] {
            let now = NIODeadline.uptimeNanoseconds(0)
            func head(_ fields: HTTPHeaders) -> HTTPServerRequestPart {
                var headers = fields
                headers.add(name: "Host", value: "a")
                return .head(
                    HTTPRequestHead(
                        version: .http1_1, method: .POST, uri: "/\(count)", headers: headers))
            }
            switch event {
            case .head: return machine.received(head([:]), now: now)
            case .lastHead: return machine.received(head(["Connection": "close"]), now: now)
            case .body: return machine.received(.body(ByteBuffer(string: "x")), now: now)
            case .end: return machine.received(.end(nil), now: now)
            case .readCompleted: return machine.readCompleted(now: now)
            case .written: return machine.responseWritten(now: now)
            case .filled:
                machine.bodyFilled(now: now)
                return []
            case .wanted: return machine.bodyWanted(now: now)
            case .writable: return machine.writabilityChanged(to: true, now: now)
            case .unwritable: return machine.writabilityChanged(to: false, now: now)
            case .garbage: return machine.failed(HTTPParserError.invalidMethod)
            case .inputClosed: return machine.inputClosed()
            case .quiesce: return machine.quiesce()
            }
        }
    }

    /// Tries every possible sequence of seven events.
    @Test func everyShortHistoryIsTheModels() {
        var count = 0
        func explore(_ pair: Pair, depth: Int) {
            guard depth > 0 else { return }
            for event in Event.allCases where pair.model.allows(event) {
                var next = pair
                count += 1
                guard next.apply(event) else {
                    Issue.record("\(next.history), then \(next.model)")
                    return
                }
                explore(next, depth: depth - 1)
            }
        }
        explore(Pair(), depth: 7)
        #expect(count > 100_000)
    }

    @Test func longHistoriesAreTheModels() {
        var random = SplitMix64(seed: 20_261_123)
        var ends: Set<String> = []
        for _ in 0..<2_000 {
            var pair = Pair()
            for _ in 0..<80 {
                let allowed = Event.allCases.filter { event in
                    // Ends are rare; otherwise no history would be long.
                    let isEnd = [.garbage, .inputClosed, .quiesce, .lastHead].contains(event)
                    return pair.model.allows(event)
                        && (!isEnd || Int.random(in: 0..<20, using: &random) == 0)
                }
                guard let event = allowed.randomElement(using: &random) else { break }
                guard pair.apply(event) else {
                    Issue.record("\(pair.history), then \(pair.model)")
                    return
                }
            }
            if pair.model.isOver { ends.insert("over") }
            if pair.model.requests.count > 10 { ends.insert("long") }
        }
        #expect(ends == ["over", "long"])
    }
}
