/// A configuration that came by network, to be compared with the one in force.
///
/// It can name any path of the host, so only files that the configuration in force names as well are
/// read for it. Whether the others are usable is found by `check-config`, or by the reload.
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
