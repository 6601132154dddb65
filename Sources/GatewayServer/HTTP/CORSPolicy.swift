import NIOHTTP1

/// Which web pages of other origins may read responses (WHATWG Fetch, section 3.3).
///
/// Responses never permit credentials, so a browser sends neither cookies nor certificates of its
/// own: a page needs a token or a ticket, as every client does. Only the routes of clients and the
/// keys are for pages; the keys are for all of them, so that caches may ignore `Vary`.
package struct CORSPolicy: Sendable {
    private let origins: Set<String>

    private static let client = GatewayRoute.path("/v1/apps/:app/clients/:client")
    private static let keys = GatewayRoute.path("/.well-known/jwks.json")
    /// The fields of responses that a page may read, besides those that need no permission.
    private static let exposedFields = [
        FieldName.date, FieldName.eTag, FieldName.preferenceApplied, FieldName.rateLimit,
        FieldName.rateLimitPolicy, FieldName.retryAfter, FieldName.timelineCursor,
        FieldName.timelineRegistration,
    ].joined(separator: ", ")
    /// The fields of requests that a page may set, besides those that need no permission.
    private static let requestFields = [
        FieldName.authorization, FieldName.contentType, FieldName.lastEventID, FieldName.prefer,
        FieldName.timelineRegistration,
    ].joined(separator: ", ")
    /// The seconds for which browsers may keep the answer; Chromium keeps none longer.
    private static let maxAge = "7200"

    /// - Parameter origins: The origins, as browsers send them; none for no fields at all.
    package init(_ origins: [String]) { self.origins = Set(origins) }

    /// Returns the fields of a response; `origin` is that of the page, if a page sent the request.
    func fields(for origin: String?) -> HTTPHeaders {
        guard !origins.isEmpty else { return [:] }
        var fields: HTTPHeaders = [FieldName.vary: FieldName.origin]
        if let origin, origins.contains(origin) { Self.permit(origin, in: &fields) }
        return fields
    }

    private static func permit(_ origin: String, in fields: inout HTTPHeaders) {
        fields.add(name: FieldName.accessControlAllowOrigin, value: origin)
        fields.add(name: FieldName.accessControlExposeHeaders, value: exposedFields)
    }

    /// Adds the fields to a response; to that of a preflight also what a page may send.
    func complete(
        _ response: inout RouteResponse, to request: HTTPRequestHead, at segments: PathSegments
    ) {
        guard !origins.isEmpty else { return }
        if segments.match(Self.keys) { return Self.permit("*", in: &response.head.headers) }
        guard segments.begin(with: Self.client) else { return }
        let fields = fields(for: request.headers.value(FieldName.origin))
        response.head.headers.add(contentsOf: fields)
        guard request.method == .OPTIONS, fields.contains(name: FieldName.accessControlAllowOrigin),
            request.headers.contains(name: FieldName.accessControlRequestMethod),
            let methods = response.head.headers.value(FieldName.allow)
        else { return }
        response.head.headers.add(name: FieldName.accessControlAllowMethods, value: methods)
        response.head.headers.add(
            name: FieldName.accessControlAllowHeaders, value: Self.requestFields)
        response.head.headers.add(name: FieldName.accessControlMaxAge, value: Self.maxAge)
    }
}
