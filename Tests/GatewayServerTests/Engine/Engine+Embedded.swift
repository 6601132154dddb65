import GatewayEngine
import GatewayStorage

extension Engine {
    /// The store of an engine that a test opened on one.
    var store: SQLiteStore { opened.store }
    var writer: LogWriter { opened.writer }

    private var opened: EmbeddedStore {
        guard let embedded else { preconditionFailure("the test opened a store") }
        return embedded
    }
}
