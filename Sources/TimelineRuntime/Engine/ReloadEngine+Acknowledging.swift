import WidgetModel

extension ReloadEngine {
    mutating func orderAcknowledgement() {
        guard registered != nil, !mustReadRegistration, acks.sent == nil, isSettled,
            let cursor = appliedCursor
        else { return }
        if let notBefore = acks.notBefore, notBefore > now { return }
        acks.notBefore = nil
        let covers = acks.owedSequence.map { $0 <= cursor.sequence } ?? false
        guard covers || !acks.reports.isEmpty else { return }
        if covers { acks.owedSequence = nil }
        var next = acks.reports
        next.cursor = cursor
        acks.reports = Acknowledgement()
        acks.sent = next
        actions.append(.acknowledge(next))
    }

    mutating func acknowledgementFailed(_ refusal: EngineEvent.Rejection) {
        guard let failed = acks.sent else { return }
        acks.sent = nil
        switch refusal {
        case .unknownClient:
            registrationLost()
            // The gateway ends the stream of an unknown client; the next one is opened after
            // registering.
            if link.state == .active {
                link.state = .waiting(until: now + link.backoff.next(using: &generator))
            }
        case .permanent:
            // A retry would be refused too. The next resumption confirms the cursor instead.
            break
        case .temporary, .otherRegistration:
            if case .otherRegistration(let digest) = refusal { registeredOtherwise(digest) }
            acks.notBefore = now + wait(after: refusal, \.acks.backoff)
            acks.reports.rebuilt = failed.rebuilt + acks.reports.rebuilt
            acks.reports.failed = failed.failed + acks.reports.failed
            acks.reports.dropOldest()
            acks.reports.recommendations += failed.recommendations.filter {
                !acks.reports.recommendations.contains($0)
            }
            if acks.reports.isEmpty, let cursor = failed.cursor {
                acks.owedSequence = max(acks.owedSequence ?? 0, cursor.sequence)
            }
        }
    }
}
