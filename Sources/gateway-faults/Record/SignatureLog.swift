import GatewaySigning
import GatewayTestSupport

/// Checks signatures against the keys that a gateway publishes. It fetches the keys when a
/// notification names an unknown one. While the gateway does not answer, its notifications wait for
/// ``finish(fetch:_:)``.
final class SignatureLog: Sendable {
    private struct State {
        /// Every set of keys that was ever published.
        var sets: [JWKSet] = []
        var verified: Set<String> = []
        var waiting: [(client: String, text: String)] = []
    }

    private let state = TestHTTPMonitor(State())

    /// Checks a notification now, if its key is known, or later.
    func check(_ text: String, of client: String, fetch: () throws -> [UInt8]) {
        if isVerified(text) { return }
        read(try? fetch())
        if !isVerified(text) { state.update { $0.waiting.append((client, text)) } }
    }

    /// Checks those that wait; calls `reject` for each that does not verify.
    func finish(fetch: () throws -> [UInt8], _ reject: (_ client: String, _ reason: String) -> Void)
    {
        read(try? fetch())
        let waiting = state.update { state in
            defer { state.waiting = [] }
            return state.waiting
        }
        for (client, text) in waiting where !isVerified(text) {
            reject(client, "no published key verifies \(text.prefix(60))…")
        }
    }

    private func read(_ keys: [UInt8]?) {
        guard let keys, let set = try? JWKSet(parsing: keys) else { return }
        state.update { if !$0.sets.contains(set) { $0.sets.append(set) } }
    }

    private func isVerified(_ text: String) -> Bool {
        let (known, sets) = state.update { ($0.verified.contains(text), $0.sets) }
        if known { return true }
        let bytes = Array(text.utf8)
        guard let jws = try? JWS(parsing: bytes, bytesMax: JWS.notificationBytesMax) else {
            return false
        }
        let isSigned = sets.contains { (try? jws.verifiedPayload(by: $0, as: .reload)) != nil }
        if isSigned { state.update { _ = $0.verified.insert(text) } }
        return isSigned
    }
}
