import GatewayCore

extension ClientDirectory {
    /// The maximum number of attempts at replacing a registration that others replace concurrently.
    static let replacementAttemptsMax = 8

    /// A replacement that is in force.
    struct Replaced: Sendable {
        let replacement: RegistrationReplacement
        /// Whether the client had no registration before.
        let isNew: Bool
        /// The sequence from which it is in force.
        let position: UInt64
    }

    /// Replaces a client's registration with one that `replacement` makes from it.
    ///
    /// `replacement` runs on the caller's thread: its cost grows with what the client sends, and
    /// all apps share the log's writer. The writer only compares the registration and the rules in
    /// force with those that the replacement was based on, and stores the result. If either changed
    /// in between, for example by a new catalog, `replacement` is called again, at most
    /// ``replacementAttemptsMax`` times in all. Replacements for one client wait for each other.
    ///
    /// - Parameters:
    ///   - documentBytes: The size of the input that `replacement` reads besides the registration.
    ///   - confirms: Whether only the client's confirmations changed.
    ///   - isSeen: Whether to record the client as seen; `false` where the caller does that.
    /// - Returns: The replacement, once it is in force; `nil` if `replacement` makes none.
    /// - Throws: The errors of `replacement`; ``EngineError/quota(_:)`` if the app has the maximum
    ///   number of clients; ``EngineError/busy(_:)`` if too many replacements for the client wait,
    ///   or if its registration changed at each attempt.
    func replaceRegistration(
        of key: ClientKey, documentBytes: Int = 0, confirms: Bool = false, isSeen: Bool = false,
        with replacement: (RegistrationBase) async throws -> RegistrationReplacement?
    ) async throws -> Replaced? {
        guard await locks.lock(key) else { throw EngineError.busy(.registrations) }
        defer { locks.unlock(key) }
        if catalogs.ruleSet(of: key.app) == nil {
            // Another gateway may have put it a moment ago.
            _ = try await log.barrier()
        }
        var payload = try await log.registration(key)
        for _ in 0..<Self.replacementAttemptsMax {
            let size = documentBytes + (payload?.count ?? 0)
            let (base, made) = try await documents.run(.bytes(size), for: key.app) {
                let base = try RegistrationBase(
                    payload: payload, ruleSet: catalogs.ruleSet(of: key.app))
                return (base, try await replacement(base))
            }
            guard let made else { return nil }
            let update = RegistrationUpdate(
                key: key, replacement: made, base: base, confirms: confirms, isSeen: isSeen)
            switch try await log.put(update) {
            case .stored(let isNew, let position):
                return Replaced(replacement: made, isNew: isNew, position: position)
            case .outdated(let current): payload = current
            }
        }
        throw EngineError.busy(.registrationChanges)
    }
}
