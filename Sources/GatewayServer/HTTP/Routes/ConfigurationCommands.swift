import GatewayDocuments
import WidgetModel

/// The operations on the configuration that the routes offer to operators.
package struct ConfigurationCommands: Sendable {
    /// Reads the configuration again, as SIGHUP does; returns the changes.
    let reload: @Sendable () async throws(Faults) -> [ChangedOption]
    /// Returns the changes that another document would cause.
    let compare: @Sendable (_ document: [UInt8]) async throws(Faults) -> [ChangedOption]
    /// The maximum length of a document, in bytes.
    let documentBytesMax: Int
}
