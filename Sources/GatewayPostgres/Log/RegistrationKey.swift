package struct RegistrationKey: Sendable, Hashable {
    /// The partition: 12 bits of a keyed hash of app and client.
    package let part: Int16
    /// The bundle id of the app.
    package let app: String
    /// The id of the client within the app.
    package let client: String

    package init(part: Int16, app: String, client: String) {
        self.part = part
        self.app = app
        self.client = client
    }
}

extension RegistrationKey {
    /// Whether the server can store the names.
    var isStorable: Bool { app.isStorableName && client.isStorableName }
}

extension String {
    /// Whether the server can store it as a name: PostgreSQL has no text with a NUL, and an index no
    /// long one. An error of the server would end the connection, and with it the writes of others.
    var isStorableName: Bool { utf8.count <= 512 && !utf8.contains(0) }
}
