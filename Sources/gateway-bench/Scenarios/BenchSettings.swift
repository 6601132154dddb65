import WidgetModel

/// The size of the measurement, and the programs and cores.
struct BenchSettings {
    var gateway: String
    /// The cores the server runs on; `nil` for any.
    var serverCores: [Int]?
    /// The cores this program runs on; `nil` for any.
    var benchCores: [Int]?
    /// Whether everything is smaller.
    var isQuick: Bool
    var repetitions: Int
    /// Streams of `fanout`, `latency`, `storm` and `cluster`.
    var streams: Int
    /// Deliveries a second in `latency`.
    var rate: Double
    /// Requests in `accept` and `register`, pushes of the pool, and devices of the gateway, in `push`.
    var requests: Int
    /// Widgets of `decide`.
    var widgets: Int
    /// Whether `decide` runs in this very process, which was started for it.
    var isInProcess: Bool
    /// Changes that `decide` decides in this very process for an instruction counter to see; `nil`
    /// to time them.
    var countedChanges: Int?

    /// Changes at the start of a run that are not measured.
    var warmUpChanges: Int { isQuick ? 3 : 10 }
    /// Changes of a closed loop.
    var closedChanges: Int { isQuick ? 10 : 40 }
    /// Seconds at a fixed rate.
    var rateSeconds: Double { isQuick ? 2 : 8 }
    /// Changes a second that make ``rate`` with so many streams.
    func changesPerSecond(streams: Int) -> Double { rate / Double(max(1, streams)) }

    var json: JSONValue {
        func cores(_ list: [Int]?) -> JSONValue {
            list.map { .array($0.map { .integer(Int64($0)) }) } ?? .null
        }
        return [
            "gateway": .string(gateway), "serverCores": cores(serverCores),
            "benchCores": cores(benchCores), "quick": .bool(isQuick),
            "repetitions": .integer(Int64(repetitions)),
            "streams": .integer(Int64(streams)), "rate": .number(rate),
            "requests": .integer(Int64(requests)), "widgets": .integer(Int64(widgets)),
        ]
    }
}
