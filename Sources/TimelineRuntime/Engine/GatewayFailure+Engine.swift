import TimelineGatewayClient
import WidgetModel

extension GatewayFailure {
    /// The failure in the engine's terms.
    package var refusal: EngineEvent.Rejection {
        guard case .refused(let problem) = self else { return .temporary(retryAfter: nil) }
        if problem.status == 404 { return .unknownClient }
        if isRegistrationMismatch { return .otherRegistration(digest: problem.digest) }
        guard mayPass else { return .permanent }
        return .temporary(retryAfter: problem.retryAfter.map { .seconds(max(0, $0)) })
    }
}
