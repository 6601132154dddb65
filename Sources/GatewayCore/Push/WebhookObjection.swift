/// The reason why a webhook's URL can never be requested, known without resolving its host.
package enum WebhookObjection: Error, Sendable, Hashable {
    /// The URL has no unambiguous form.
    case url(WebhookEndpoint.Fault)
    /// The host is an address that is not permitted.
    case address(IPAddress, AddressGuard.Rejection)

    /// Checks a URL; returns `nil` if a request to it is possible.
    package init?(to url: String, by addressGuard: AddressGuard) {
        let endpoint: WebhookEndpoint
        do throws(WebhookEndpoint.Fault) {
            endpoint = try WebhookEndpoint(url)
        } catch {
            self = .url(error)
            return
        }
        guard let address = endpoint.address, let refusal = addressGuard.refusal(of: address)
        else { return nil }
        self = .address(address, refusal)
    }

    /// Returns the fault in words, to follow the name of the member.
    ///
    /// - Parameter option: The option that allows more addresses.
    package func message(allowedBy option: String = "webhooks.allowedRanges") -> String {
        switch self {
        case .url(.tooLong): "may have at most \(WebhookEndpoint.lengthMax) bytes"
        case .url(.character):
            "contains a space, a backslash, a control character or a character outside ASCII; "
                + "use percent-encoding, and punycode for the host"
        case .url(.scheme): "must be an https URL"
        case .url(.userInformation):
            "must not contain a user name or password; requests are signed instead"
        case .url(.host):
            "must have a host: a name, an IPv4 address in four decimal parts, or an IPv6 address in "
                + "brackets"
        case .url(.port): "must have a port from 1 to 65535, or none"
        case .url(.fragment): "must not contain a fragment, which is never sent"
        case .address(let address, let refusal):
            "has the address \(address), which is not allowed: \(refusal.rawValue) (an operator may "
                + "add it to `\(option)`)"
        }
    }
}
