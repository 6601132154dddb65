import ArgumentParser

/// A shape of attack, with the largest documents that the limits allow.
enum ShapeName: String, CaseIterable, Sendable, ExpressibleByArgument {
    case patch
    case tinyRecords = "tiny-records"
    case keyUpdates = "key-updates"
    case aliases
    case unknownEntities = "unknown-entities"
    case catalog
    case changeKeys = "change-keys"
    case batchKeys = "batch-keys"
    case registrations
    case refusedTokens = "refused-tokens"
    case unknownKinds = "unknown-kinds"
    case emptyArrays = "empty-arrays"
    case batch
    case explain
    case diff
    case lists
    case reads
    case acknowledgements
    case orders

    /// A description in a line of at most 64 characters.
    var abstract: String {
        switch self {
        case .patch: "patches of 256 KiB of misspelt unknown members"
        case .tinyRecords: "stream readers that send records of one byte"
        case .keyUpdates: "stream readers that keep requesting TLS key updates"
        case .aliases: "catalogs of 1 MiB of YAML aliases, PUT and diff"
        case .unknownEntities: "catalogs with 16,000 rules about unknown entities"
        case .catalog: "catalogs with 32,000 rules, each replacing the previous one"
        case .changeKeys: "changes that invalidate nearly 10,000 keys with long values"
        case .batchKeys: "posts that invalidate 200,000 keys with 20 and with 1,000 events"
        case .registrations: "registrations of 256 KiB on many connections"
        case .refusedTokens: "tokens with invalid signatures, all different"
        case .unknownKinds: "registrations with 400 unknown kinds beside 500 known ones"
        case .emptyArrays: "posts of 8 MiB of empty arrays"
        case .batch: "posts of 1,000 events of 8 KiB"
        case .explain: "posts, a change and a client explained, 10,000 keys each"
        case .diff: "diff of a catalog with 32,000 rules against the log"
        case .lists: "clients, changes, attempts and events, 1,000 per page"
        case .reads: "reads of the largest registration and catalog, and polls"
        case .acknowledgements: "acknowledgements with 3,000 entries"
        case .orders: "tokens, pushes, starts, reloads, configurations of maximum size"
        }
    }

    /// Name and abstract, for a list of all.
    var help: String {
        "  " + rawValue + String(repeating: " ", count: max(1, 18 - rawValue.count)) + abstract
    }
}
