/// A permission of the bearer of a token.
package enum Scope: String, Sendable, Hashable, CaseIterable {
    /// Replace and read an app's catalog.
    case catalogWrite = "catalog:write"
    /// Post and explain changes.
    case changesWrite = "changes:write"
    /// Act as one client: its registration, reloads and acknowledgements.
    case client = "client"
    /// Register, list and erase any client.
    case clientsWrite = "clients:write"
    /// Request any reload, delete the app, and read everything of it.
    case operate = "operator"
    /// Read metrics, lists and explanations, without changing anything.
    case operatorRead = "operator:read"
    /// Request tokens for clients.
    case tokensIssue = "tokens:issue"

    /// Returns the known scopes of a `scope` claim: names separated by spaces (RFC 6749 section
    /// 3.3). Unknown names grant nothing and are ignored.
    package static func known(in claim: String) -> Set<Scope> {
        Set(claim.split(separator: " ").compactMap { Scope(rawValue: String($0)) })
    }

    /// Returns whether a bearer with these scopes has the permission `scope`: it is one of them, or
    /// one of them implies it.
    package static func grants(_ scope: Scope, from scopes: Set<Scope>) -> Bool {
        scopes.contains(scope) || scope == .operatorRead && scopes.contains(.operate)
    }

    /// Returns a `scope` claim with sorted names, so that equal sets have equal texts.
    package static func claim(_ scopes: Set<Scope>) -> String {
        scopes.map(\.rawValue).sorted().joined(separator: " ")
    }
}
