/// What the bearer of a token may do.
package enum Scope: String, Sendable, Hashable, CaseIterable {
    /// Replace and read an app's catalog.
    case catalogWrite = "catalog:write"
    /// Post and explain changes.
    case changesWrite = "changes:write"
    /// Be one client: its registration, reloads and acknowledgements.
    case client = "client"
    /// Register, list and erase any client.
    case clientsWrite = "clients:write"
    /// Reload everything, explain clients.
    case operate = "operator"
    /// Have tokens for clients made.
    case tokensIssue = "tokens:issue"

    /// The known scopes of a `scope` claim: names between spaces (RFC 6749 section 3.3). Names that
    /// are not known grant nothing and are passed over.
    package static func known(in claim: String) -> Set<Scope> {
        Set(claim.split(separator: " ").compactMap { Scope(rawValue: String($0)) })
    }

    /// A `scope` claim, names sorted so that equal sets read the same.
    package static func claim(_ scopes: Set<Scope>) -> String {
        scopes.map(\.rawValue).sorted().joined(separator: " ")
    }
}
