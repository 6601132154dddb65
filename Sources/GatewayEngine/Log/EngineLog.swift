import Foundation
import GatewayCore
import GatewayRecords
import WidgetModel

/// The log and the registrations of a gateway, as the engine writes them.
///
/// The contract of every store:
/// - A write is stored whole or not at all. A method returns when its write is durable and handed
///   to every event loop of this gateway, and throws if nothing was written or the outcome is
///   unknown. A log that comes over a network may be late: then a method returns before, and the
///   write is in force from its sequence on.
/// - Sequences have no gaps. Event loops receive the entries in the order of their sequences, and
///   none that could still be lost.
/// - A write that was decided by a catalog or from a registration that is not in force any more
///   writes nothing and says so; the caller decides again.
/// - An event is known by the bytes of source and id, as long as the log keeps it and its app is
///   not removed.
package protocol EngineLog: Sendable {
    /// The highest sequence that is durable.
    var head: UInt64 { get }

    /// Returns the head once this gateway has applied everything that any gateway of the log had
    /// answered for when it was called.
    ///
    /// - Throws: ``EngineError/cluster(_:)`` if that cannot be known now.
    func barrier() async throws -> UInt64

    /// Whether the registration of a client is in memory, if there is one.
    func isHeld(_ key: ClientKey) -> Bool

    /// Returns once the registration of a client is in memory, if there is one. It stays there while
    /// the client has a stream, and for minutes after its last contact.
    ///
    /// - Throws: ``EngineError/cluster(_:)`` if it cannot be read now.
    func hold(_ key: ClientKey) async throws

    /// Appends the events of a post that the log does not contain.
    ///
    /// - Returns: `nil` if another catalog is in force than the one that decided the post.
    /// - Throws: ``EngineError/unknownApp``; ``EngineError/eventIDReused(_:)`` if the log contains an
    ///   event of the same source and id with other data; ``EngineError/invalid(_:)`` if an event
    ///   that the log does not contain invalidates too much; ``EngineError/quota(_:)``.
    func append(
        _ post: DecidedPost, to app: String, trace: PostTrace?
    ) async throws -> PostOutcome?

    /// Appends an operator's reload; returns its sequence.
    ///
    /// - Throws: ``EngineError/unknownApp`` and ``EngineError/unknownClient``;
    ///   ``EngineError/invalid(_:)`` for a kind that is not declared.
    func append(
        _ scope: ReloadScope, to app: String, trace: ReloadTrace?
    ) async throws -> UInt64

    /// Puts a catalog in force. Writes nothing if its document is in force already.
    ///
    /// - Returns: `nil` if the catalog that it was compiled to replace is not in force.
    /// - Throws: ``EngineError/preconditionFailed``; ``EngineError/quota(_:)``.
    func put(_ upload: CatalogUpload) async throws -> CatalogOutcome?

    /// Removes an app with its catalog and clients.
    ///
    /// - Returns: The sequence at which the app ended, and the number of its clients.
    /// - Throws: ``EngineError/unknownApp`` for an app without a catalog.
    func removeApp(_ app: String) async throws -> (sequence: UInt64, clients: Int)

    /// Returns a registration as it is stored; `nil` if there is none.
    func registration(_ key: ClientKey) async throws -> RegistrationVersion?

    /// Stores a registration in place of the one that it was made from: returns when every event
    /// loop of this gateway has applied it.
    ///
    /// - Throws: ``EngineError/quota(_:)`` if the app has the maximum number of clients.
    func put(_ update: RegistrationUpdate) async throws -> RegistrationUpdate.Outcome

    /// Removes a client; returns whether it was registered.
    func remove(_ key: ClientKey) async throws -> Bool

    /// Removes clients of an app with an attribute, at most `limit` of them; returns their number.
    func removeClients(
        of app: String, with attribute: (name: String, value: String), limit: Int
    ) async throws -> Int

    /// Removes clients unseen since a time in milliseconds since 1970, at most `limit` of them;
    /// returns their number.
    func removeClients(unseenSince: Int64, limit: Int) async throws -> Int
}

/// The result of a post.
package struct PostOutcome: Sendable, Equatable {
    /// The number of events that were appended.
    package var accepted = 0
    /// The number of events that the log, or the post, contained already.
    package var duplicates = 0
    /// The number of appended events that concern no kind.
    package var unmatched = 0
    /// The number of appended events that make a whole kind stale.
    package var broad = 0
    /// The highest sequence of its events; the head of the log for a post without events.
    package var sequence: UInt64 = 0

    /// Creates the result of a post without events.
    package init() {}
}

/// A catalog that is to be put in force.
package struct CatalogUpload: Sendable {
    package let app: String
    /// The media type of the document.
    package let contentType: String
    /// The document.
    package let body: [UInt8]
    /// Its entity tag.
    package let etag: String
    /// The document in stored form.
    package let payload: Data
    /// The condition of the upload.
    package let precondition: Precondition
    /// The catalog, compiled as a replacement for ``previous``; `nil` if its document was in force.
    package let compiled: RuleSet?
    /// The rules that were in force when it was compiled.
    package let previous: RuleSet?
}

/// The result of a catalog upload.
package struct CatalogOutcome: Sendable {
    /// The document in force.
    package let document: CatalogDocument
    /// Whether the app had no catalog before.
    package let isNew: Bool

    package init(document: CatalogDocument, isNew: Bool) {
        self.document = document
        self.isNew = isNew
    }
}
