import GatewayCore

extension DeliveryEngine {
    /// What an engine may use, and how.
    package struct Configuration: Sendable {
        /// Which certificates are trusted.
        package enum Trust: Sendable, Hashable {
            /// The system's.
            case system
            /// Those of a PEM file alone, which is read for each connection.
            case file(String)
            /// Those of a PEM text alone.
            case pem([UInt8])
        }

        /// The certificate that the engine shows to those who ask for one.
        package struct Identity: Sendable, Hashable {
            /// The certificate in PEM, and those between it and its root.
            package var certificate: [UInt8]
            /// Its private key in PEM, not encrypted.
            package var key: [UInt8]

            /// A certificate and its key.
            package init(certificate: [UInt8], key: [UInt8]) {
                self.certificate = certificate
                self.key = key
            }
        }

        /// Names the thread, up to 15 bytes of it.
        package var name: String
        /// Which certificates are trusted.
        package var trust = Trust.system
        /// Whether origins may be `http://`, where nothing is encrypted and nobody certified.
        package var allowsPlainText = false
        /// The certificate that is shown.
        package var identity: Identity?
        /// Which addresses may be connected to; `nil` when all may.
        package var addressGuard: AddressGuard?

        /// Most requests under way at once.
        package var requestsMax = 1_000
        /// Most callers that wait for room.
        package var waitingMax = 10_000
        /// Most connections at once.
        package var connectionsMax = 1
        /// Most connections to one host and port at once.
        package var connectionsPerHostMax = 1
        /// Most requests at once over one connection, where the peer allows more.
        package var streamsMax = 1_000

        /// Longest wait for a connection, TLS included.
        package var connectDeadline: Duration = .seconds(15)
        /// A connection that nothing used for so long is not used again.
        package var idleMax: Duration = .seconds(4 * 3_600)
        /// A connection that was open for so long is not used again.
        package var lifetimeMax: Duration = .seconds(24 * 3_600)
        /// An idle connection is probed by TCP after this time, and then as often.
        package var keepAlive: Duration = .seconds(600)

        /// The header fields of answers that are kept, in lower case: up to four.
        package var answerFields: [String] = []
        /// The longest value of a field that is kept, in bytes.
        package var fieldBytesMax = 1_024
        /// As much of an answer's body is read, in bytes.
        package var bodyBytesMax = 16 * 1_024

        /// The usual bounds, for one connection.
        package init(name: String) {
            self.name = name
        }
    }
}
