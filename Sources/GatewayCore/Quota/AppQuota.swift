/// The limits of the data that one app may store.
package struct AppQuota: Sendable, Hashable {
    /// The maximum number of registrations.
    package var clientsMax = 1_000_000
    /// The maximum bytes of payloads in the log, catalogs included: a million entries of 4 KiB.
    package var logBytesMax = 4 << 30

    package init() {}

    /// The reason why an app may not store more.
    package enum Rejection: Error, Hashable {
        /// The app has the maximum number of registrations.
        case tooManyClients(limit: Int)
        /// The log has no space for the app until older rows are removed.
        case logFull(used: Int, adding: Int, limit: Int)
        /// The log would have no space even if it contained nothing else of the app.
        case exceedsLog(adding: Int, limit: Int)
        /// The app has the maximum number of starts of Live Activities that may still be pushed.
        case tooManyStarts(limit: Int)
    }

    /// Checks that an app may add a registration.
    package func checkNewClient(of usage: AppUsage) throws(Rejection) {
        guard usage.clients < clientsMax else { throw .tooManyClients(limit: clientsMax) }
    }

    /// Checks that the log may store more bytes of an app. Adding 0 bytes always succeeds.
    package func checkLog(adding bytes: Int, to usage: AppUsage) throws(Rejection) {
        guard bytes > 0 else { return }
        guard bytes <= logBytesMax else { throw .exceedsLog(adding: bytes, limit: logBytesMax) }
        guard bytes <= logBytesMax - max(0, usage.logBytes) else {
            throw .logFull(used: usage.logBytes, adding: bytes, limit: logBytesMax)
        }
    }
}
