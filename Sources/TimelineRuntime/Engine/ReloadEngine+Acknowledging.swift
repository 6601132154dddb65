import WidgetModel

extension ReloadEngine {
    mutating func orderAcknowledgement() {
        guard registered != nil, !mustReadRegistration, acknowledging == nil, isSettled,
            let cursor = appliedCursor
        else { return }
        if let acknowledgeNotBefore, acknowledgeNotBefore > now { return }
        acknowledgeNotBefore = nil
        let covers = owedSequence.map { $0 <= cursor.sequence } ?? false
        guard covers || !reports.isEmpty else { return }
        if covers { owedSequence = nil }
        var next = reports
        next.cursor = cursor
        reports = Acknowledgement()
        acknowledging = next
        actions.append(.acknowledge(next))
    }

    mutating func acknowledged() {
        acknowledging = nil
        acknowledgementBackoff.succeeded()
    }

    mutating func acknowledgementFailed(_ refusal: EngineEvent.Rejection) {
        guard let failed = acknowledging else { return }
        acknowledging = nil
        switch refusal {
        case .unknownClient:
            registrationLost()
            // The gateway ends the stream of an unknown client; the next one is opened after
            // registering.
            if link == .active {
                link = .waiting(until: now + linkBackoff.next(using: &generator))
            }
        case .permanent:
            // A retry would be refused too. The next resumption confirms the cursor instead.
            break
        case .temporary, .otherRegistration:
            if case .otherRegistration(let digest) = refusal { registeredOtherwise(digest) }
            acknowledgeNotBefore = now + wait(after: refusal, \.acknowledgementBackoff)
            let max = Acknowledgement.entriesMax
            reports.rebuilt = Array((failed.rebuilt + reports.rebuilt).suffix(max))
            reports.failed = Array((failed.failed + reports.failed).suffix(max))
            reports.recommendations += failed.recommendations.filter {
                !reports.recommendations.contains($0)
            }
            if reports.isEmpty, let cursor = failed.cursor {
                owedSequence = Swift.max(owedSequence ?? 0, cursor.sequence)
            }
        }
    }
}
