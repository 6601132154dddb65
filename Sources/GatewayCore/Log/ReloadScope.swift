/// What an operator's reload is for.
package enum ReloadScope: Sendable, Hashable {
    /// Everything that clients of the app hold.
    case everything
    /// The timelines and controls of one kind.
    case kind(String)
    /// Everything that one client holds.
    case client(String)
}

extension RuleSet {
    /// The key by which everything in a scope depends on operators.
    func operatorKey(_ scope: ReloadScope) -> UInt64 {
        switch scope {
        case .everything: operatorKey
        case .kind(let kind): operatorKey(kind: kind)
        case .client(let client): operatorKey(client: client)
        }
    }
}
