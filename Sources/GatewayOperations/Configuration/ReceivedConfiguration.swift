/// A configuration that came by network, to be compared with the one in force.
///
/// It can name any path of the host, so only files that the configuration in force also names are
/// read for it. `check-config` or the reload checks the others.
package struct ReceivedConfiguration: Sendable {
    /// The document, YAML or JSON.
    package let document: [UInt8]
    /// The files that may be read.
    package let readable: Set<String>

    /// Creates a configuration that is compared with another.
    package init(_ document: [UInt8], comparedWith current: GatewayConfiguration) {
        self.document = document
        readable = Set(current.files.values)
    }
}
