import GatewayOperations
import Glibc
import NIOCore

/// A port that cannot be opened.
package struct PortError: Error, Sendable, CustomStringConvertible {
    package let address: Address
    /// The kernel's reason.
    private let reason: String

    package init(_ address: Address, _ error: any Error) {
        self.address = address
        guard let error = error as? IOError else {
            reason = "\(error)"
            return
        }
        let isInUse = error.errnoCode == EADDRINUSE
        reason =
            String(cString: strerror(error.errnoCode))
            + (isInUse ? "; another program, or another gateway, listens there" : "")
    }

    package var description: String { "\(address) cannot be opened: \(reason)" }
}
