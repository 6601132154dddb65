import ArgumentParser

struct SizeOptions: ParsableArguments {
    /// Most of anything.
    private static let countMax = 10_000_000

    @Flag(help: "Smaller sizes: a minute or two instead of many. Results are rough.")
    var quick = false

    @Option(help: "Repetitions. Default: 5 for one scenario, 3 for several, 1 with --quick.")
    var repetitions: Int?

    @Option(help: "Streams of fanout, latency, storm and cluster. Default: 10000, quick 1000.")
    var streams: Int?

    @Option(help: "Deliveries per second of latency. Default: 5 times the streams.")
    var rate: Double?

    @Option(help: "Requests of accept, register and push. Default: 20000, quick 2000.")
    var requests: Int?

    @Option(help: "Widgets of decide. Default: 1000000, quick 50000.")
    var widgets: Int?

    func validate() throws {
        let counts = [
            ("--repetitions", repetitions), ("--streams", streams), ("--requests", requests),
            ("--widgets", widgets),
        ]
        for (name, count) in counts {
            if let count, !(1...Self.countMax).contains(count) {
                throw ValidationError("\(name) must be 1 to \(Self.countMax).")
            }
        }
        if let rate, !(rate >= 1 && rate <= 1e9) {
            throw ValidationError("--rate must be 1 to 1000000000.")
        }
    }

    func value(_ given: Int?, _ full: Int, quick small: Int) -> Int {
        given ?? (quick ? small : full)
    }
}
