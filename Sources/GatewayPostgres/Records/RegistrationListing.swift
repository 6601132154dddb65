/// A page of the registrations of an app, ordered by the bytes of the client's id.
package struct RegistrationListing: Sendable, Equatable {
    package var app: String
    /// The keyed hash of an attribute that the registrations have; `nil` for all registrations.
    package var attribute: UInt128?
    /// The beginning of the ids.
    package var prefix: String
    /// The id after which the page begins; empty for the first page.
    package var after: String
    /// The maximum number of rows.
    package var limit: Int64
    /// The bytes of payload after which the page ends.
    package var bytesMax: Int64

    package init(
        app: String, attribute: UInt128?, prefix: String, after: String, limit: Int64,
        bytesMax: Int64
    ) {
        self.app = app
        self.attribute = attribute
        self.prefix = prefix
        self.after = after
        self.limit = limit
        self.bytesMax = bytesMax
    }

    /// A registration of a page.
    package struct Row: Sendable, Equatable {
        package let client: String
        /// The content, wrapped.
        package let payload: [UInt8]
        /// The time of the last write, milliseconds since 1970.
        package let updatedAt: Int64
        /// The day on which the client was last seen, since 1970; 0 if it was not.
        package let seenDay: Int64
    }

    package struct Page: Sendable, Equatable {
        package var rows: [Row]
        /// Whether there are more behind the last one.
        package var hasMore: Bool
        /// The newest sequence when they were read: they are durable once it is.
        package var head: Int64
    }

    /// The page without what the server has no text for: no id contains a NUL, so those behind one
    /// that does are those behind its beginning. `nil` if no registration can fit.
    var storable: Self? {
        guard app.isStorableName, !prefix.utf8.contains(0) else { return nil }
        var page = self
        page.after = String(decoding: after.utf8.prefix { $0 != 0 }, as: UTF8.self)
        return page
    }
}
