// swift-format-ignore-file
// A stub for Deploy/check-client: see AppleFoundation.swift.
import Foundation

public enum Curve25519 {
    public enum Signing {
        public struct PublicKey: Sendable {
            public init<D>(rawRepresentation data: D) throws where D: ContiguousBytes {}
            public func isValidSignature<S, D>(_ signature: S, for data: D) -> Bool
            where S: DataProtocol, D: DataProtocol { false }
        }
    }
}

public enum P256 {
    public enum Signing {
        public struct PublicKey: Sendable {
            public init<D>(rawRepresentation: D) throws where D: ContiguousBytes {}
            public func isValidSignature<D>(
                _ signature: P256.Signing.ECDSASignature, for data: D
            ) -> Bool where D: DataProtocol { false }
        }

        public struct ECDSASignature: Sendable {
            public init<D>(rawRepresentation: D) throws where D: DataProtocol {}
        }
    }
}
