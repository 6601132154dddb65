/// The arguments of `tg.commit_append`.
package struct AppendCall: Sendable, Equatable {
    /// A registration with what was found of it.
    package struct Registration: Sendable, Equatable {
        package var key: RegistrationKey
        /// The revision that it was decided from; 0 for none.
        package var base: Int64
        package var revision: Int64
        /// The sequence of the app's last removal: a row from before it is none.
        package var removal: Int64
        /// The row; `nil` removes it.
        package var content: RegistrationContent?
    }

    /// A push address that gets another owner.
    package struct Claim: Sendable, Equatable {
        /// The keyed hash of the address.
        package var token: UInt128
        /// The place of its new owner among the registrations, from 1.
        package var place: Int32
        /// The owner as probed; `nil` for none.
        package var owner: RegistrationKey?
    }

    /// A catalog, or the removal of an app.
    package struct Catalog: Sendable, Equatable {
        package var app: String
        /// The place of its record in the batch, from 1.
        package var place: Int32
        /// The catalog; `nil` for a removal.
        package var payload: [UInt8]?
    }

    package var generation: Int64
    /// 63 random bits that name the batch.
    package var batch: Int64
    /// 16 random bytes for the chain.
    package var link: UInt128
    /// The number of records.
    package var count: Int64 = 0
    /// The head at which everything that the batch is decided by was looked up.
    package var probed: Int64
    package var keys: [UInt128] = []
    /// The digests of the events' data.
    package var digests: [Int64] = []
    /// The places of the events in the batch, from 1.
    package var places: [Int32] = []
    /// The records, one after the other.
    package var records: [UInt8] = []
    package var apps: [String] = []
    package var catalogs: [Catalog] = []
    package var registrations: [Registration] = []
    /// The push addresses.
    package var claims: [Claim] = []
}

/// The keys to look up before a batch is decided.
package struct Probe: Sendable, Equatable {
    package var events: [UInt128] = []
    package var apps: [String] = []
    package var registrations: [RegistrationKey] = []
    /// The push addresses of those.
    package var tokens: [UInt128] = []

    package init() {}
}

/// The state of the log and the tables at one head, as far as a ``Probe`` asked for it.
package struct ProbeResult: Sendable, Equatable {
    /// The places of an app's catalogs.
    package struct App: Sendable, Equatable {
        /// The sequence of its newest catalog or removal; 0 for none.
        package var newest: Int64 = 0
        /// The sequence of its last removal; 0 for none.
        package var removal: Int64 = 0
    }

    /// The newest sequence of the log.
    package var head: Int64
    package var events: [UInt128: KnownEvent] = [:]
    /// The places of the apps that have any.
    package var apps: [String: App] = [:]
    /// The revisions of the rows that exist.
    package var revisions: [RegistrationKey: Int64] = [:]
    /// The owners of the push addresses that have one.
    package var owners: [UInt128: RegistrationKey] = [:]

    /// Creates a result without anything known.
    package init(head: Int64) { self.head = head }
}

/// An event that the log contains.
package struct KnownEvent: Sendable, Equatable {
    package let sequence: Int64
    /// The keyed hash of its data.
    package let digest: Int64
}
