import GatewayCore
import GatewaySigning
import GatewayTLS
import NIOCore
import WidgetModel

/// The connection and path of a request, for its handler.
package struct GatewayContext: Sendable {
    /// The connection, or the HTTP/2 stream.
    let channel: any Channel
    /// The path segments that match the names of the route's path, as they were sent.
    let names: [(name: String, text: String)]
    /// The sender of a request without a token; the admin port knows it in some cases.
    var reader: VerifiedToken?

    /// The text of the path that stands for a name, as it was sent; `-` if the route has none.
    func text(_ parameter: String) -> String {
        names.first { $0.name == parameter }?.text ?? "-"
    }

    /// An app or client of the path, decoded.
    ///
    /// Checked here for every route: names are compared as strings in memory and as bytes on disk,
    /// and only plain ASCII is the same name for both.
    ///
    /// - Throws: 400 if it is not percent-encoded UTF-8, 422 if it is not a valid id.
    func name(_ parameter: String) throws -> String {
        guard let text = names.first(where: { $0.name == parameter })?.text else {
            throw Problem.noSuchRoute
        }
        guard let name = text.percentDecoded else {
            throw Problem.malformed("The path is not percent-encoded UTF-8.")
        }
        guard Identifier.isValid(name) else { throw Problem.wrongName(parameter) }
        return name
    }

    func clientKey() throws -> ClientKey {
        ClientKey(app: try name("app"), client: try name("client"))
    }

    /// The SAN URIs of the connection's client certificate.
    func certificateURIs() async -> [String] {
        // An HTTP/2 stream has the connection as its parent.
        let connection = channel.parent ?? channel
        let uris = try? await connection.pipeline.handler(type: TLSServerHandler.self)
            .map(\.peerCertificateURIs).get()
        return uris ?? []
    }
}
