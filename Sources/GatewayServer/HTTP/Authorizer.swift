import GatewayCore
import GatewayEngine
import GatewayOperations
import GatewaySigning
import GatewayTLS
import Logging
import WidgetModel

/// Determines the sender of a request and its permissions.
package struct Authorizer: Sendable {
    let access: AccessState
    /// Where rejected tokens are logged; `nil` for nowhere.
    var log: SampledLog?

    /// Whether any client certificate has a grant.
    var takesCertificates: Bool { !access.grants.all.isEmpty }

    /// Returns the token of a request, or a certificate grant in its place. A rejected token is
    /// logged with its source address.
    ///
    /// - Parameter limits: The limits of its source address, app and client that the request counts
    ///   against; `nil` for none.
    /// - Throws: 401 without a valid token (RFC 6750), 403 if its issuer may not vouch for it, 429.
    package func token(
        _ authorization: String?, from source: SourceAddress?, _ limits: RequestLimits? = nil,
        certificateURIs: () -> [String]
    ) throws(ProblemDetails) -> VerifiedToken {
        let token: VerifiedToken
        // Both `nil` if the verdict on the token was cached.
        var (kind, excess): (TokenKind?, ProblemDetails?) = (nil, nil)
        do throws(ProblemDetails) {
            token = try judge(authorization, certificateURIs) { isTrusted in
                let judged = isTrusted ? TokenKind.ofTrustedKey : .ofOtherKey
                kind = judged
                excess = limits?.excessOfRefusedTokens(source, of: judged)
                return excess == nil
            }
        } catch {
            if let excess { throw excess }
            guard authorization != nil else { throw error }
            if let kind { limits?.noteRefusedToken(source, of: kind) }
            log?.log(
                .rejectedToken, of: "\(source ?? .unknown) \(error.code)",
                [
                    "from": "\(source ?? .unknown)", "reason": "\(error.code)",
                    "detail": "\(error.detail ?? "")",
                ])
            throw error
        }
        try limits?.admit(token)
        return token
    }

    private func judge(
        _ authorization: String?, _ certificateURIs: () -> [String],
        permit: (_ namesTrustedKey: Bool) -> Bool
    ) throws(ProblemDetails) -> VerifiedToken {
        guard let authorization else {
            if let grant = grant(certificateURIs()) { return grant }
            throw Problem.unauthorized(
                "token-missing", "Send the header `Authorization: Bearer TOKEN`.")
        }
        guard let token = Self.bearerToken(authorization) else {
            throw Problem.unauthorized(
                "token-malformed", "The Authorization header must be `Bearer TOKEN`.")
        }
        do throws(TokenRejection) {
            return try access.verifier.verify(token, now: access.now(), permit: permit)
        } catch {
            var message = error.message
            if error == .wrongAudience, let audience = access.verifier.policy.audiences.min() {
                message += " It must be, or contain, \(audience)."
            }
            throw error.isInvalidToken
                ? Problem.unauthorized(error.code, message)
                : Problem.forbidden(error.code, error.message)
        }
    }

    /// The text after the scheme `Bearer`, in either case, and a space.
    private static func bearerToken(_ authorization: String) -> [UInt8]? {
        var authorization = authorization
        // Sound: the pointer is read only within the closure that provides it.
        return authorization.withUTF8 { bytes in
            let scheme = "bearer".utf8
            guard bytes.count > scheme.count + 1, bytes[scheme.count] == UInt8(ascii: " "),
                zip(bytes, scheme).allSatisfy({ $0 | 0x20 == $1 })
            else { return nil }
            return Array(bytes[(scheme.count + 1)...])
        }
    }

    private func grant(_ uris: [String]) -> VerifiedToken? {
        let grants = access.grants.all
        for uri in uris {
            if let grant = grants.first(where: { $0.uri.hasSameBytes(as: uri) }) {
                return VerifiedToken(
                    issuer: "certificate", subject: uri, app: grant.app, scopes: grant.scopes,
                    expires: .max, validFrom: 0, attributes: [:], kid: "")
            }
        }
        return nil
    }

    /// Requires one of several scopes for an app.
    package func require(
        _ scopes: Scope..., for token: VerifiedToken, app: String
    ) throws(ProblemDetails) {
        try require(scopes, for: token, app: app)
    }

    /// Requires one of several scopes for an app.
    func require(
        _ scopes: [Scope], for token: VerifiedToken, app: String
    ) throws(ProblemDetails) {
        guard token.concerns(app: app) else {
            throw Problem.forbidden("wrong-app", "The token is for another app.")
        }
        guard scopes.contains(where: { Scope.grants($0, from: token.scopes) }) else {
            let names = scopes.map(\.rawValue).joined(separator: " or ")
            throw Problem.forbidden("insufficient-scope", "The token lacks the scope \(names).")
        }
    }

    /// Requires the client itself or, if `backendMay` is true, a backend of the app. The response
    /// does not depend on whether the client exists.
    func requireClient(
        _ token: VerifiedToken, _ key: ClientKey, backendMay: Bool
    ) throws(ProblemDetails) {
        guard token.concerns(app: key.app) else {
            throw Problem.forbidden("wrong-app", "The token is for another app.")
        }
        if backendMay, token.scopes.contains(.clientsWrite) { return }
        guard token.scopes.contains(.client) else {
            let needed = backendMay ? "client or clients:write" : "client"
            throw Problem.forbidden("insufficient-scope", "The token lacks the scope \(needed).")
        }
        guard token.subject.hasSameBytes(as: key.client) else {
            throw Problem.forbidden("wrong-client", "The token is for another client.")
        }
    }

    /// Returns the attributes that a client's token vouches for, if they differ from those that the
    /// registration has from the client's latest token; otherwise `nil`. Throws 403 if they
    /// contradict the registration.
    func newClaims(
        _ token: VerifiedToken, _ record: ClientRecord
    ) throws(ProblemDetails) -> [String: [String]]? {
        guard !record.origins.token.hasSameBytes(as: token.attributes) else { return nil }
        do throws(ClientAttributes.Rejection) {
            _ = try record.origins.presenting(token.attributes)
        } catch {
            throw Problem.attributes(error)
        }
        return token.attributes
    }
}
