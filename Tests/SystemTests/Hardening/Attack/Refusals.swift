import GatewayTestSupport
import Testing
import WidgetModel

/// The parts of any kind of answer that are needed to check a refusal.
protocol AnswerToJudge {
    var judgedStatus: Int { get }
    var judgedType: String? { get }
    var judgedBody: [UInt8] { get }
}

extension TestHTTPAnswer: AnswerToJudge {
    var judgedStatus: Int { status }
    var judgedType: String? { header("content-type") }
    var judgedBody: [UInt8] { body }
}

extension RawAnswer: AnswerToJudge {
    var judgedStatus: Int { status }
    var judgedType: String? { headers["content-type"] }
    var judgedBody: [UInt8] { body }
}

/// Expects a problem document (RFC 9457) that says what is wrong and where.
///
/// - Parameters:
///   - code: The end of its `type`.
///   - words: Texts that must each occur in `detail` or in a fault.
///   - place: The place of one of its faults.
func expectRefusal(
    _ answer: some AnswerToJudge, _ status: Int, _ code: String, place: String? = nil,
    says words: String..., sourceLocation: SourceLocation = #_sourceLocation
) {
    let text = String(decoding: answer.judgedBody, as: UTF8.self)
    #expect(answer.judgedStatus == status, "\(text)", sourceLocation: sourceLocation)
    #expect(
        answer.judgedType == "application/problem+json", "\(text)", sourceLocation: sourceLocation)
    guard let value = try? JSONValue(parsing: answer.judgedBody),
        let problem = ProblemDetails(value, status: answer.judgedStatus)
    else {
        Issue.record("no problem: \(text)", sourceLocation: sourceLocation)
        return
    }
    #expect(problem.code == code, sourceLocation: sourceLocation)
    #expect(
        value.objectValue?["status"]?.integerValue == Int64(status), sourceLocation: sourceLocation)
    #expect(
        problem.detail?.isEmpty == false || !problem.faults.isEmpty,
        "a refusal says what to do: \(text)", sourceLocation: sourceLocation)
    let said = ([problem.detail ?? ""] + problem.faults.map(\.description)).joined(separator: "\n")
    for word in words {
        #expect(said.contains(word), sourceLocation: sourceLocation)
    }
    if let place {
        #expect(
            problem.faults.contains { $0.place == place }, "\(text)",
            sourceLocation: sourceLocation)
    }
    #expect(!text.contains(Target.secret), "values are not echoed", sourceLocation: sourceLocation)
    #expect(!text.contains("eyJ"), "tokens are not echoed", sourceLocation: sourceLocation)
}
