/// Names a client of an app.
package struct ClientKey: Sendable, Hashable {
    /// The app.
    package let app: String
    /// The client within it.
    package let client: String

    /// A client's name.
    package init(app: String, client: String) {
        self.app = app
        self.client = client
    }
}
