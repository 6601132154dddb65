import HTTPTypes

/// What every answer of the admin port says in its head: a browser shows its pages.
enum AdminHeaders {
    /// Name and value, which is another where a route says so.
    static let fields: [(name: HTTPField.Name, value: String)] = [
        (.contentSecurityPolicy, StaticFiles.policy), (.xContentTypeOptions, "nosniff"),
        (.referrerPolicy, "no-referrer"), (.crossOriginResourcePolicy, "same-origin"),
        (.crossOriginOpenerPolicy, "same-origin"), (.cacheControl, "no-store"),
    ]
}

extension HTTPField.Name {
    fileprivate static let referrerPolicy = Self("Referrer-Policy") ?? .server
    fileprivate static let crossOriginOpenerPolicy = Self("Cross-Origin-Opener-Policy") ?? .server
}
