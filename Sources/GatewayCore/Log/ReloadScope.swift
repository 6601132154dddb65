/// The scope of a reload that an operator requests.
package enum ReloadScope: Sendable, Hashable {
    /// All subscriptions of the app's clients.
    case everything
    /// The timelines and controls of one kind.
    case kind(String)
    /// All subscriptions of one client.
    case client(String)
}

extension RuleSet {
    /// Returns the key that all subscriptions in a scope depend on, for operator reloads.
    func operatorKey(_ scope: ReloadScope) -> UInt64 {
        switch scope {
        case .everything: operatorKey
        case .kind(let kind): operatorKey(kind: kind)
        case .client(let client): operatorKey(client: client)
        }
    }
}
