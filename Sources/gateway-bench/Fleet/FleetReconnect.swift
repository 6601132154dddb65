/// The clients of nodes that are lost, until all have a stream at another node.
///
/// A client returns after the time that its stream had named: all streams of the fleet, divided by
/// what the nodes open, more or less. A balancer gives it to any node. A node that has opened as many
/// streams as it may answers 503, with the time that its queue needs.
struct FleetReconnect {
    /// The time between two looks at the clients that are due, seconds.
    private static let step = 0.1

    /// The number of clients that lost their stream.
    let clients: Int
    /// The number of answers with 503.
    private(set) var refused = 0
    /// The streams that were opened in each step.
    private(set) var opened: [Int] = []

    /// Lets the clients return.
    ///
    /// - Parameter nodes: The number of nodes that are left.
    init(
        clients: Int, of connected: Double, nodes: Int, constants: FleetConstants,
        using chance: inout FleetChance
    ) {
        self.clients = clients
        var due: [Int] = []
        func add(at time: Double) {
            let step = Int(time / Self.step)
            while due.count <= step { due.append(0) }
            due[step] += 1
        }
        let named = connected / (constants.admission * Double(nodes))
        for _ in 0..<clients {
            add(at: named * chance.factor(deviation: constants.returnDeviation))
        }
        let perStep = constants.admission * Self.step
        // The streams that each node may still open, and the end of its queue.
        var allowed = [Double](repeating: 0, count: nodes)
        var queueEnds = [Double](repeating: 0, count: nodes)
        var step = 0
        while step < due.count {
            // A refused client returns in a later step.
            let now = Double(step + 1) * Self.step
            for node in allowed.indices {
                allowed[node] = min(max(1, 2 * perStep), allowed[node] + perStep)
            }
            var count = 0
            for _ in 0..<due[step] {
                let node = chance.index(below: nodes)
                if allowed[node] >= 1 {
                    allowed[node] -= 1
                    count += 1
                } else {
                    refused += 1
                    queueEnds[node] = max(queueEnds[node], now) + 1 / constants.admission
                    let after = max(1, (queueEnds[node] - now).rounded(.up))
                    add(at: now + after * chance.factor(deviation: constants.returnDeviation))
                }
            }
            opened.append(count)
            step += 1
        }
    }

    /// Returns the time after which a part of the clients have a stream again, seconds.
    func time(of part: Double) -> Double {
        let wanted = part * Double(clients)
        var sum = 0
        for (step, count) in opened.enumerated() {
            sum += count
            if Double(sum) >= wanted { return Double(step + 1) * Self.step }
        }
        return Double(opened.count) * Self.step
    }

    /// The highest number of streams that the fleet opened in a second.
    var peak: Int {
        let perSecond = Int((1 / Self.step).rounded())
        return stride(from: 0, to: opened.count, by: perSecond).map {
            opened[$0..<min(opened.count, $0 + perSecond)].reduce(0, +)
        }.max() ?? 0
    }
}
