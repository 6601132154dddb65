/// The identity of a client: its app and its id.
package struct ClientKey: Sendable, Hashable {
    package let app: String
    /// The client within it.
    package let client: String

    package init(app: String, client: String) {
        self.app = app
        self.client = client
    }
}
