/// A row of the table of secrets. Times are in seconds since 1970 by the server's clock.
package struct SecretRow: Sendable, Equatable {
    /// The kind, of a program that may be newer.
    package var kind: String
    /// The name, unique in its kind.
    package var name: String
    /// The time of its first use.
    package var notBefore: Int64
    /// The time until which it is valid; `nil` while none follows it.
    package var notAfter: Int64?
    /// The secret, wrapped under the fleet key.
    package var wrapped: [UInt8]

    package init(
        kind: String, name: String, notBefore: Int64, notAfter: Int64? = nil, wrapped: [UInt8] = []
    ) {
        self.kind = kind
        self.name = name
        self.notBefore = notBefore
        self.notAfter = notAfter
        self.wrapped = wrapped
    }
}
