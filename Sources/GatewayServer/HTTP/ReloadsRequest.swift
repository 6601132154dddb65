import Foundation
import NIOHTTP1
import WidgetModel

/// A request for stale timelines, with the fields that its admission depends on.
struct ReloadsRequest: Equatable {
    /// The target, as it was sent.
    var path: String
    var authorization: String?
    /// The cursor at which a stream resumes (WHATWG HTML, section 9.2.4).
    var lastEventID: String?
    /// The digest of the registration that is in force according to the client.
    var registration: String?
    /// Whether the request asks for an event stream.
    var wantsStream: Bool
    /// The fields by which proxies state the address of the client.
    var forwarded: [String] = []
    /// The origin of the web page that sends it.
    var origin: String?

    /// The ticket of a request for a stream that has no token.
    var ticket: String? {
        guard wantsStream, authorization == nil else { return nil }
        return try? QueryText.parameters(PathSegments(path).query)
            .first { $0.name == StreamTickets.parameter }?.value
    }
}

extension ReloadsRequest {
    init(_ head: HTTPRequestHead) {
        path = head.uri
        authorization = head.headers.value(FieldName.authorization)
        lastEventID = head.headers.value(FieldName.lastEventID)
        registration = head.headers.value(FieldName.timelineRegistration)
        wantsStream = head.method == .GET && Self.acceptsEventStream(head.headers)
        forwarded = head.headers.values(FieldName.forwarded)
        origin = head.headers.value(FieldName.origin)
    }

    static func acceptsEventStream(_ fields: HTTPHeaders) -> Bool {
        fields.values(FieldName.accept).contains { acceptsEventStream($0) }
    }

    /// Whether an `Accept` field lists event streams (RFC 9110 section 12.5.1).
    static func acceptsEventStream(_ accept: String) -> Bool {
        accept == EventStreamEncoder.mediaType
            || accept.split(separator: ",").contains {
                MediaType(String($0)).essence == EventStreamEncoder.mediaType
            }
    }
}

extension StringProtocol {
    /// The text, decoded; `nil` if it is not percent-encoded UTF-8 (RFC 3986 section 2.1).
    package var percentDecoded: String? {
        utf8.contains(UInt8(ascii: "%")) ? removingPercentEncoding : String(self)
    }
}
