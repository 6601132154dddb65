/// The security header fields of every answer of the admin port, whose pages a browser shows.
package enum AdminHeaders {
    /// What pages of this port may do (Content Security Policy Level 3): load the port's own scripts
    /// and styles, and ask the port itself.
    private static let contentSecurityPolicy =
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        + "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

    /// Name and value, which is another where a route says so.
    package static let fields: [(name: String, value: String)] = [
        ("Content-Security-Policy", contentSecurityPolicy), ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"), ("Cross-Origin-Resource-Policy", "same-origin"),
        ("Cross-Origin-Opener-Policy", "same-origin"), (FieldName.cacheControl, "no-store"),
    ]
}
