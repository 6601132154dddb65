import Foundation
import GatewayCore
import GatewayOperations

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
    package let document: CatalogDocument
    /// Whether the app had no catalog before.
    package let isNew: Bool
}
