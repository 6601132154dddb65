/// Something in the backend that changes.
enum Subject: Hashable, Sendable {
    /// A character of the game, by id.
    case character(String)
    /// The game of an account, by the account's id.
    case account(String)
    /// A mark that every client follows, posted to see how far a stream has come.
    case pulse

    var kinds: [WidgetKind] {
        switch self {
        case .character: [.detail, .party]
        case .account: [.status]
        case .pulse: [.pulse]
        }
    }
}

/// A widget kind of the campaign's catalog.
enum WidgetKind: String, Hashable, Sendable {
    /// Shows one character.
    case detail
    /// Shows several characters, with a collapse window.
    case party
    /// Shows the game of the client's account.
    case status
    case pulse
}

/// A dependency of a client: a widget of this kind shows this subject.
struct Interest: Hashable, Sendable, CustomStringConvertible {
    let kind: WidgetKind
    let subject: Subject

    var description: String {
        switch subject {
        case .character(let id): "\(kind.rawValue) of \(id)"
        case .account(let id): "\(kind.rawValue) of account \(id)"
        case .pulse: kind.rawValue
        }
    }
}
