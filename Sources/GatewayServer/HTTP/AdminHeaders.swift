/// The security header fields of every response of the admin port, whose pages a browser shows.
package enum AdminHeaders {
    /// The permissions of the port's pages (Content Security Policy Level 3): to load the port's
    /// own scripts and styles, and to send requests to the port itself.
    private static let contentSecurityPolicy =
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        + "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

    /// Names and default values; a route may state another value.
    package static let fields: [(name: String, value: String)] = [
        ("Content-Security-Policy", contentSecurityPolicy), ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"), ("Cross-Origin-Resource-Policy", "same-origin"),
        ("Cross-Origin-Opener-Policy", "same-origin"), (FieldName.cacheControl, "no-store"),
    ]
}
