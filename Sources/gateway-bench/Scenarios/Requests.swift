extension Repetition {
    private static let batchEvents = 100
    private static let things = 10_000

    /// Measures `accept`: posts of changes over kept-alive connections.
    func accept() throws -> [Sample] {
        try Stage.with(settings) { stage in
            let batches = max(1, settings.requests / 10)
            return try [
                ("alone", settings.requests, 1),
                ("in batches of \(Self.batchEvents)", batches, Self.batchEvents),
            ].flatMap { name, requests, events in
                tell("\(requests * events) changes \(name)")
                var thing = 0
                let (seconds, cpu) = try send(requests, on: stage) {
                    stage.change(
                        (0..<events).map { _ in
                            thing = (thing + 1) % Self.things
                            return String(thing)
                        })
                }
                let changes = Double(requests * events)
                return [
                    Sample(.accept, "changes \(name)", changes / seconds, unit: "1/s"),
                    Sample(.accept, "server CPU per change, \(name)", cpu / changes, unit: "us"),
                ]
            }
        }
    }

    /// Measures `register`: registrations over kept-alive connections.
    func register() throws -> [Sample] {
        try Stage.with(settings) { stage in
            tell("\(settings.requests) registrations")
            var number = 0
            let (seconds, cpu) = try send(settings.requests, on: stage) {
                defer { number += 1 }
                return stage.registration(
                    number, things: (0..<4).map { String((number * 4 + $0) % Self.things) })
            }
            let count = Double(settings.requests)
            return [
                Sample(.register, "registrations", count / seconds, unit: "1/s"),
                Sample(.register, "server CPU per registration", cpu / count, unit: "us"),
            ]
        }
    }

    /// Sends requests and returns the time that they took, and the gateway's CPU time in microseconds.
    private func send(
        _ count: Int, on stage: Stage, _ request: () -> [UInt8]
    ) throws -> (seconds: Double, cpuMicroseconds: Double) {
        let requester = try stage.requester()
        // Made before: their cost for this program is not the gateway's time.
        var requests = (0..<count).map { _ in request() }[...]
        var seconds = 0.0
        let cpu = try stage.cpuNanoseconds { seconds = try requester.run { requests.popFirst() } }
        return (max(seconds, 1e-9), Double(cpu) / 1e3)
    }
}
