/// The limits of what one app may keep at one time.
package struct AppQuota: Sendable, Hashable {
    /// The most registrations.
    package var clientsMax = 1_000_000
    /// The most bytes of payloads in the log, catalogs included: a million entries of 4 KiB.
    package var logBytesMax = 4 << 30

    /// Creates the default limits.
    package init() {}

    /// The reason why an app may not keep more.
    package enum Refusal: Error, Hashable {
        /// The app has as many registrations as it may.
        case tooManyClients(limit: Int)
        /// The log has no room for the app until older rows are gone.
        case logFull(used: Int, adding: Int, limit: Int)
        /// The log would have no room even if it held nothing else of the app.
        case exceedsLog(adding: Int, limit: Int)
    }

    /// Checks that an app may have one registration more.
    ///
    /// - Parameter usage: What the app keeps already.
    package func checkNewClient(of usage: AppUsage) throws(Refusal) {
        guard usage.clients < clientsMax else { throw .tooManyClients(limit: clientsMax) }
    }

    /// Checks that the log may take more bytes of an app. No bytes are always taken.
    ///
    /// - Parameter usage: What the app keeps already.
    package func checkLog(adding bytes: Int, to usage: AppUsage) throws(Refusal) {
        guard bytes > 0 else { return }
        guard bytes <= logBytesMax else { throw .exceedsLog(adding: bytes, limit: logBytesMax) }
        guard bytes <= logBytesMax - max(0, usage.logBytes) else {
            throw .logFull(used: usage.logBytes, adding: bytes, limit: logBytesMax)
        }
    }
}
