import CCurl
import CurlMulti
import GatewayCore

/// Why a request has no answer.
package struct DeliveryError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure; stable, for programs.
    package enum Code: String, Sendable, CaseIterable {
        /// The engine is closed, or being drained.
        case closed
        /// As many callers wait for room as may.
        case busy
        /// The request could never be sent.
        case badRequest = "bad-request"
        /// libcurl has no memory.
        case noMemory = "no-memory"
        /// The caller does not want it any more.
        case cancelled

        /// The name could not be resolved.
        case unresolved
        /// The address is one that may not be asked.
        case addressNotAllowed = "address-not-allowed"
        /// Nothing listens there.
        case unreachable
        /// One of the two sides does not trust the other's certificate, or they share no TLS.
        case notTrusted = "not-trusted"
        /// The deadline passed before the request could be sent.
        case notSent = "not-sent"

        /// The stream was refused, or lies above the last one that a GOAWAY named: the peer has
        /// certainly not acted on it.
        case notProcessed = "not-processed"
        /// The connection ended before the answer.
        case connectionEnded = "connection-ended"
        /// The stream was reset before the answer.
        case streamReset = "stream-reset"
        /// The request was sent, and the deadline passed before the answer.
        case timedOut = "timed-out"
    }

    /// The kind of failure.
    package let code: Code
    /// One sentence for a person, without secrets.
    package let message: String

    /// A failure.
    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// "timed-out: Operation timed out after 30001 milliseconds".
    package var description: String { "\(code.rawValue): \(message)" }

    /// What it says about APNs; `nil` where it is this side that did not want or could not.
    package var failure: APNsOutcome.Failure? {
        switch code {
        case .closed, .busy, .badRequest, .noMemory, .cancelled: nil
        case .unresolved, .addressNotAllowed, .unreachable, .notTrusted, .notSent:
            .notConnected
        case .notProcessed: .notProcessed
        case .connectionEnded: .connectionEnded
        case .streamReset: .streamReset
        case .timedOut: .timedOut
        }
    }
}

extension DeliveryError.Code {
    /// The kind of a failure that libcurl reports.
    ///
    /// - Parameters:
    ///   - isSent: Whether the request was handed to a connection before.
    init(_ failure: CurlFailure, isSent: Bool) {
        self =
            switch failure {
            case .badRequest: .badRequest
            case .timedOut: isSent ? .timedOut : .notSent
            case .unresolved where !isSent: .unresolved
            case .notTrusted where !isSent: .notTrusted
            case .streamReset: .streamReset
            case _ where !isSent: .unreachable
            default: .connectionEnded
            }
    }
}
