import Foundation
import TimelineRuntime

/// A connection whose failures say what to do, in terms of this program's options.
struct AdvisedConnection: GatewayConnection {
    private let connection: any GatewayConnection
    private let advice: ConnectionAdvice

    init(_ connection: any GatewayConnection, _ advice: ConnectionAdvice) {
        self.connection = connection
        self.advice = advice
    }

    func send(_ request: GatewayRequest) async throws(ConnectionError) -> GatewayResponse {
        do throws(ConnectionError) {
            return try await connection.send(request)
        } catch {
            throw advice.error(error)
        }
    }

    func stream(_ request: GatewayRequest) async throws(ConnectionError) -> GatewayStream {
        do throws(ConnectionError) {
            return try await connection.stream(request)
        } catch {
            throw advice.error(error)
        }
    }
}

/// Explains failures of a connection.
struct ConnectionAdvice: Sendable {
    /// The origin of the peer, such as `https://host:8443`.
    let origin: String
    /// The file of certificates to trust; `nil` for the system's.
    let ca: String?

    /// Returns a failure with the peer's address, and with what to do where that can be told.
    func error(_ error: ConnectionError) -> ConnectionError {
        ConnectionError(error.code, text(error).map { "\(origin): \($0)" } ?? error.message)
    }

    private func text(_ error: ConnectionError) -> String? {
        // The words of libcurl and OpenSSL.
        func says(_ text: String) -> Bool {
            error.message.range(of: text, options: .caseInsensitive) != nil
        }
        if says("error setting certificate file") || says("CA cert") || says("CAfile") {
            return "\(ca ?? "the system's certificates") cannot be used as certificates to trust: "
                + "--ca (TIMELINE_GATEWAY_CA) must be a file with certificates in PEM"
        }
        if says("wrong version number") || says("packet length too long") {
            return "it does not speak TLS; is this the gateway's TLS port?"
        }
        if says("HTTP/0.9") || says("Unsupported protocol") {
            return "it does not speak plain HTTP; is this the gateway's TLS port? --admin needs "
                + "the admin port, 127.0.0.1:9464 by default"
        }
        if says("subject name") || says("does not match target host") {
            return "its certificate is for another host; use the name in the certificate as --url "
                + "(\(error.message))"
        }
        if says("certificate has expired") || says("not yet valid") {
            return "its certificate is not valid now (\(error.message))"
        }
        if says("SSL certificate problem") {
            let trusted = ca.map { "by \($0)" } ?? "by the system's certificates"
            return "its certificate is not trusted \(trusted); name the CA that issued it with "
                + "--ca or TIMELINE_GATEWAY_CA (\(error.message))"
        }
        if says("certificate required") || says("bad certificate") || says("handshake failure") {
            return "it rejects this client in the TLS handshake: \(error.message)"
        }
        switch error.code {
        case .unreachable, .unresolved, .timedOut, .notTrusted: return error.message
        default: return nil
        }
    }
}
