import GatewayEngine
import GatewayStorage

extension Engine {
    /// The store of an engine that a test opened on one.
    var store: SQLiteStore { embedded!.store }
    var writer: LogWriter { embedded!.writer }
}
