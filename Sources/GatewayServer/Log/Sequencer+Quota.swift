import GatewayCore
import GatewayStorage

/// The quotas of apps, checked on the writer's thread: it sees what the jobs before it in the same
/// transaction did, so that no two requests pass a limit together.
extension Sequencer {
    /// Checks that an app may have one registration more.
    ///
    /// - Throws: 422 where it may not.
    func checkNewClient(
        of app: String, _ transaction: borrowing StoreTransaction
    ) throws {
        do throws(AppQuota.Refusal) {
            try quota.checkNewClient(of: transaction.usage(of: app))
        } catch {
            throw Problem.quota(error)
        }
    }

    /// Checks that the log may take more bytes of an app.
    ///
    /// - Throws: 429 where it may not now, 413 where it never may.
    func checkLog(
        adding bytes: Int, of app: String, _ transaction: borrowing StoreTransaction
    ) throws {
        guard bytes > 0 else { return }
        do throws(AppQuota.Refusal) {
            try quota.checkLog(adding: bytes, to: transaction.usage(of: app))
        } catch {
            throw Problem.quota(error)
        }
    }
}
