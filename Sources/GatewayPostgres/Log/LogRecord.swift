/// One entry of the log, as every node applies it.
package struct LogRecord: Sendable, Equatable {
    /// The name of the event that brought a change, for operators.
    package struct Event: Sendable, Equatable {
        package var source: String
        /// The id, unique within its source.
        package var id: String

        package init(source: String, id: String) {
            self.source = source
            self.id = id
        }
    }

    /// The state of a registration from this record on.
    package struct Registration: Sendable, Equatable {
        /// The partition of the client.
        package var part: Int16
        package var client: String
        /// The revision of its row, higher than all before.
        package var revision: Int64
        /// The keyed hash of the registration's content.
        package var digest: Int64

        package init(part: Int16, client: String, revision: Int64, digest: Int64) {
            self.part = part
            self.client = client
            self.revision = revision
            self.digest = digest
        }
    }

    package enum Content: Sendable, Equatable {
        /// A data change; without the name of its event where that is not known any more.
        case change(event: Event?, payload: [UInt8])
        /// A catalog, which is in force for all later records of its app.
        case catalog(payload: [UInt8])
        /// A reload that an operator requested.
        case reload(scope: [UInt8])
        /// The removal of the app with its catalogs and registrations.
        case removal
        /// A registration was put or patched; nodes that hold its client read the row again.
        case registration(Registration)
        case registrationRemoved(part: Int16, client: String, revision: Int64)
        /// A push address of a client now belongs to another one; the owner of the partition reads
        /// the client's addresses again.
        case addressesLost(part: Int16, client: String)
    }

    /// The bundle id of the app.
    package let app: String
    package let content: Content

    package init(app: String, _ content: Content) {
        self.app = app
        self.content = content
    }
}
