import Foundation
import WidgetModel

/// The outcome of one row with one seed.
struct RunReport {
    let row: Row
    let seed: UInt64
    let seconds: Double
    let verdict: Verdict
    let figures: [(name: String, value: String)]
    /// The reason why the run could not be finished.
    let failure: String?
    /// The reason why the machine cannot give this fault.
    let skipped: String?
    /// The notification that was taken out of the record on purpose.
    let planted: String?
    let elapsed: Double

    var holds: Bool { verdict.violations.isEmpty && failure == nil }

    /// Runs a row and judges its record.
    init(_ row: Row, _ context: RowContext, _ plant: Plant?) {
        let start = ContinuousClock.now
        self.row = row
        seed = context.seed
        seconds = context.seconds
        var (failure, skipped): (String?, String?) = (nil, nil)
        do {
            try row.run(context)
        } catch let error as RowSkipped {
            skipped = error.reason
        } catch {
            failure = "\(error)\n\(context.campaign?.deployment.standardErrorTail ?? "")"
        }
        context.campaign?.stop()
        var record = context.campaign?.recorder.record ?? Record()
        var planted: String?
        if plant == .loss {
            if let loss = PlantedLoss.plant(in: record, using: &context.generator) {
                (record, planted) = (loss.record, loss.text)
            } else {
                failure = failure ?? "the record contains no notification that could be missed"
            }
        }
        verdict = Judge.judge(record)
        figures = context.figures
        self.failure = failure
        self.skipped = skipped
        self.planted = planted
        elapsed = start.duration(to: .now) / .seconds(1)
    }

    private var allFigures: [(name: String, value: String)] {
        [
            ("changes", "\(verdict.changes)"), ("posts refused", "\(verdict.refusedPosts)"),
            ("posts unanswered", "\(verdict.unansweredPosts)"),
            ("registrations", "\(verdict.registrations)"),
            ("notifications", "\(verdict.notifications)"), ("cursors", "\(verdict.watermarks)"),
            ("lost", "\(verdict.count(of: .lost))"),
            ("needless", "\(verdict.count(of: .needless))"),
            ("excused", "\(verdict.excused)"),
        ] + figures
    }

    var command: String {
        "Deploy/check-faults --row \(row.name) --seed \(seed) --seconds \(Int(seconds))"
    }

    var text: String {
        if let skipped { return "\(row.name) seed \(seed): skipped: \(skipped)" }
        var lines = [
            "\(row.name) seed \(seed): \(holds ? "holds" : "VIOLATED"); "
                + allFigures.map { "\($0.name) \($0.value)" }.joined(separator: ", ")
                + "; \(elapsed.rounded(toPlaces: 1)) s"
        ]
        if let planted { lines.append("  removed from the record: \(planted)") }
        if !holds {
            lines += verdict.violations.prefix(10).map { "  \($0)" }
            let rest = verdict.violations.count - 10
            if rest > 0 { lines.append("  and \(rest) more") }
            if let failure { lines.append("  not finished: \(failure)") }
            lines.append("  repeat: \(command)")
        }
        return lines.joined(separator: "\n")
    }

    var json: JSONValue {
        var values = JSONObject()
        for (name, value) in allFigures { values[name] = .string(value) }
        return [
            "row": .string(row.name), "finding": .string(row.finding),
            "seed": .integer(Int64(truncatingIfNeeded: seed)), "holds": .bool(holds),
            "violations": .array(verdict.violations.map { .string($0.description) }),
            "planted": planted.map { .string($0) } ?? .null,
            "skipped": skipped.map { .string($0) } ?? .null,
            "failure": failure.map { .string($0) } ?? .null,
            "seconds": .number(elapsed), "figures": .object(values), "repeat": .string(command),
        ]
    }
}

extension Double {
    /// The number with so many digits after the point.
    func rounded(toPlaces places: Int) -> String {
        String(format: "%.\(places)f", self)
    }
}
