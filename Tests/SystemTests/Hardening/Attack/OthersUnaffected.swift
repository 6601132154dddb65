import Testing

/// Checks after each test that a bystander's stream still reports changes, and that the daemon's
/// log contains nothing of the attack.
struct OthersUnaffected: SuiteTrait, TestTrait, TestScoping {
    let isRecursive = true

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await function()
        let target = try await Target.shared()
        let trouble = try await target.bystander.trouble()
        #expect(trouble == nil, "the bystander must not notice")
        expectNothingLeaked(target.log())
    }
}

extension Trait where Self == OthersUnaffected {
    /// Requires that the attack affects no one else and leaves no secrets in the log.
    static var othersUnaffected: OthersUnaffected { OthersUnaffected() }
}

/// Expects that `log` contains no token (they begin with the base64url of `{"`) and no marked
/// value.
func expectNothingLeaked(_ log: String, sourceLocation: SourceLocation = #_sourceLocation) {
    for needle in ["eyJ", Target.secret, Target.pushToken] {
        let line = log.split(separator: "\n").first { $0.contains(needle) }
        #expect(line == nil, "a secret is in the log", sourceLocation: sourceLocation)
    }
    #expect(!log.contains("Fatal error"), sourceLocation: sourceLocation)
}
