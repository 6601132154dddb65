import Foundation
import TimelineRuntime
import WidgetModel

/// One notification in printed form.
struct NotificationReport {
    let time: Date
    /// Its claims, or the reason why it did not verify.
    let outcome: Result<ReloadNotification, VerificationFailure>

    /// The text for people: time, whether it verified, and the stale things, one per line.
    var text: String {
        let time = time.ISO8601Format()
        switch outcome {
        case .failure(let failure): return "\(time)  NOT VERIFIED  \(failure)"
        case .success(let claims):
            let stale = Self.stale(claims)
            let first = "\(time)  verified  \(stale.first ?? "nothing is stale")"
            let indent = String(repeating: " ", count: time.count + 12)
            return ([first] + stale.dropFirst().map { indent + $0 }).joined(separator: "\n")
        }
    }

    var json: JSONValue {
        var object: JSONObject = ["time": .string(time.ISO8601Format())]
        switch outcome {
        case .success(let claims):
            object["verified"] = true
            object["claims"] = claims.json
        case .failure(let failure):
            object["verified"] = false
            object["code"] = .string(failure.code.rawValue)
            object["reason"] = .string(failure.message)
        }
        return .object(object)
    }

    /// The things that a notification marks as stale.
    static func stale(_ claims: ReloadNotification) -> [String] {
        if claims.all { return ["everything"] }
        var lines = claims.reload.map { reload in
            (["timeline \(reload.kind)"] + values(reload.parameters)).joined(separator: " ")
        }
        lines += claims.recommendations.map { "recommendations \($0)" }
        lines += claims.relevance.map { "relevance \($0)" }
        lines += claims.controls.map { "control \($0)" }
        lines += claims.activities.map { activity in
            let narrowed = activity.id.map { [$0] } ?? values(activity.attributes)
            return (["activity \(activity.type)"] + narrowed).joined(separator: " ")
        }
        return lines
    }

    private static func values(_ parameters: [ReloadNotification.Parameter]) -> [String] {
        parameters.map { "\($0.name)=\($0.value ?? "(unset)")" }
    }
}
