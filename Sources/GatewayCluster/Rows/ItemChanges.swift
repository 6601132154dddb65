import GatewayStorage

/// The changes of a batch to the rows that a new store reads: the newest value of everything except
/// the log. A value is the operation that stored it.
struct ItemChanges {
    /// The kinds of rows, in the order in which a beginning store repeats them. Rows of an app have
    /// the first four.
    enum Kind: Int32, CaseIterable {
        case registration = 1
        case catalog, seen, pushes
        case providerToken, epoch, meta
    }

    struct Key: Hashable {
        let kind: Kind
        let app: String
        let key: String
    }

    /// The apps whose rows go before the values come.
    private(set) var goneApps: Set<String> = []
    /// The new values; `nil` for a row that goes.
    private(set) var values: [Key: StoreOperation?] = [:]
    /// The last sequence that retention removed; 0 if it removed none.
    private(set) var floor: UInt64 = 0

    init(_ operations: [StoreOperation]) {
        for operation in operations { note(operation) }
    }

    private mutating func note(_ operation: StoreOperation) {
        func row(_ kind: Kind, _ key: RegistrationKey) -> Key {
            Key(kind: kind, app: key.app, key: key.client)
        }
        switch operation {
        case .append, .appendPushAttempt, .prunePushAttempts: break
        case .putCatalog(let catalog):
            values[
                Key(kind: .catalog, app: catalog.app, key: Self.ordered(catalog.sequence))] =
                operation
        case .deleteApp(let app):
            goneApps.insert(app)
            values = values.filter { $0.key.app != app }
        case .putRegistration(let registration, _, _):
            values[row(.registration, registration.key)] = operation
        case .deleteRegistration(let key):
            values.updateValue(nil, forKey: row(.registration, key))
            values.updateValue(nil, forKey: row(.seen, key))
        case .touch(let key, _): values[row(.seen, key)] = operation
        case .putPushClient(let pushes):
            values.updateValue(
                pushes.payload == nil ? nil : operation, forKey: row(.pushes, pushes.key))
        case .prune(let sequence): floor = max(floor, sequence)
        case .putProviderToken(let token):
            values[Key(kind: .providerToken, app: "", key: token.issuer)] = operation
        case .openEpoch(let epoch, let voidsOlder, _):
            let ordinal = UInt64(clamping: epoch.ordinal)
            values[Key(kind: .epoch, app: "", key: Self.ordered(ordinal))] = operation
            // As the store does, whatever an earlier mark came to.
            if voidsOlder { note(.voidsPositions) }
        case .setMeta(let key, _): values[Key(kind: .meta, app: "", key: key)] = operation
        }
    }

    /// A number as a text that sorts like it.
    private static func ordered(_ number: UInt64) -> String {
        let digits = String(number)
        return String(repeating: "0", count: 20 - digits.count) + digits
    }
}
