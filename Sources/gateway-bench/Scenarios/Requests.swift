/// `accept` and `register`: what backends ask of the gateway, over kept-alive connections.
struct Requests {
    private static let batchEvents = 100
    private static let things = 10_000

    let settings: BenchSettings

    /// One repetition of `accept`.
    func measureAccept(_ tell: (String) -> Void) throws -> [Sample] {
        try Stage.with(settings) { stage in
            var samples: [Sample] = []
            let batches = max(1, settings.requests / 10)
            for (name, requests, events) in [
                ("alone", settings.requests, 1),
                ("in batches of \(Self.batchEvents)", batches, Self.batchEvents),
            ] {
                tell("\(requests * events) changes \(name)")
                var thing = 0
                let (seconds, cpu) = try run(stage, requests) {
                    stage.change(
                        (0..<events).map { _ in
                            thing = (thing + 1) % Self.things
                            return String(thing)
                        })
                }
                let changes = Double(requests * events)
                samples += [
                    Sample(.accept, "changes \(name)", changes / seconds, "1/s"),
                    Sample(
                        .accept, "server CPU per change, \(name)", Double(cpu) / 1e3 / changes,
                        "us"),
                ]
            }
            return samples
        }
    }

    /// One repetition of `register`.
    func measureRegister(_ tell: (String) -> Void) throws -> [Sample] {
        try Stage.with(settings) { stage in
            tell("\(settings.requests) registrations")
            var number = 0
            let (seconds, cpu) = try run(stage, settings.requests) {
                defer { number += 1 }
                return stage.registration(
                    number, things: (0..<4).map { String((number * 4 + $0) % Self.things) })
            }
            let count = Double(settings.requests)
            return [
                Sample(.register, "registrations", count / seconds, "1/s"),
                Sample(
                    .register, "server CPU per registration", Double(cpu) / 1e3 / count, "us"),
            ]
        }
    }

    private func run(
        _ stage: Stage, _ count: Int, _ request: () -> [UInt8]
    ) throws -> (seconds: Double, cpu: Int64) {
        let requester = try stage.requester()
        defer { requester.close() }
        // Made before: what they cost this program is not the gateway's time.
        var requests = (0..<count).map { _ in request() }[...]
        var seconds = 0.0
        let cpu = try Handshakes.cpu(of: stage.gateway.processes, stage.generator) {
            seconds = try requester.run { requests.popFirst() }
        }
        return (max(seconds, 1e-9), cpu)
    }
}
