import GatewayTLS
import WidgetModel

extension GatewayConfiguration {
    /// Creates the TLS context that is configured. `now` is in seconds since 1970. Throws
    /// ``Faults`` that name the option whose file is invalid.
    package func tlsContext(now: Int64, ticketKeys: TicketKeys? = nil) throws -> TLSContext {
        var settings = TLSContextSettings()
        if let ticketKeys { settings.ticketKeys = ticketKeys }
        if let clientCA = clientCA {
            settings.clientCertificates =
                demandsClientCertificate
                ? .required(authorities: .file(clientCA)) : .optional(authorities: .file(clientCA))
        }
        settings.revocationLists = clientCRL.map { .file($0) }
        let (certificate, key): (String, String)
        switch certificates {
        case .files(let certificateFile, let keyFile):
            (certificate, key) = (certificateFile, keyFile)
        case .development:
            let made = try DevelopmentCertificates.ensure(in: data, now: now)
            (certificate, key) = (made.certificate, made.key)
        }
        do throws(TLSError) {
            return try TLSContext(
                certificateChain: .file(certificate), privateKey: .file(key), settings: settings)
        } catch {
            let option =
                error.message.contains(key)
                ? "tls.key"
                : clientCRL.map(error.message.contains) ?? false
                    ? "tls.clientCRL"
                    : clientCA.map(error.message.contains) ?? false
                        ? "tls.clientCA" : "tls.certificate"
            throw Faults(option, error.message)
        }
    }
}
