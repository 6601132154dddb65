import GatewayOperations
import Synchronization

/// The grants in force.
package final class CertificateGrants: Sendable {
    private let held: Mutex<[CertificateGrant]>

    package init(_ grants: [CertificateGrant]) {
        held = Mutex(grants)
    }

    package var all: [CertificateGrant] { held.withLock { $0 } }

    package func replace(with grants: [CertificateGrant]) {
        held.withLock { $0 = grants }
    }
}
