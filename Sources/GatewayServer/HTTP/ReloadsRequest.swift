import Foundation
import HTTPTypes
import WidgetModel

/// A request for what is stale, as far as it is looked at to admit it.
struct ReloadsRequest: Equatable {
    /// The target, as it was sent.
    var path: String
    var authorization: String?
    /// The cursor a stream goes on from (WHATWG HTML, section 9.2.4).
    var lastEventID: String?
    /// It asks for a held-open stream.
    var wantsStream: Bool

    init(path: String, authorization: String?, lastEventID: String?, wantsStream: Bool) {
        self.path = path
        self.authorization = authorization
        self.lastEventID = lastEventID
        self.wantsStream = wantsStream
    }

    /// What a request's head says.
    init(_ head: HTTPRequest) {
        path = head.path ?? ""
        authorization = head.headerFields.value(.authorization)
        lastEventID = head.headerFields.value(.lastEventID)
        wantsStream =
            head.method == .get
            && head.headerFields.contains {
                $0.name == .accept && Self.acceptsEventStream($0.value)
            }
    }

    /// Whether an `Accept` field lists event streams (RFC 9110 section 12.5.1).
    static func acceptsEventStream(_ accept: String) -> Bool {
        accept == EventStreamEncoder.mediaType
            || accept.split(separator: ",").contains {
                MediaType(String($0)).essence == EventStreamEncoder.mediaType
            }
    }
}

extension HTTPFields {
    /// A field's value; several fields of one name are one list (RFC 9110 section 5.3).
    func value(_ name: HTTPField.Name) -> String? {
        var only: String?
        for field in self where field.name == name {
            // The general way costs more than all else that is done with a short request.
            guard only == nil else { return self[name] }
            only = field.value
        }
        return only
    }
}

extension StringProtocol {
    /// Decoded; `nil` when it is not percent-encoded UTF-8 (RFC 3986 section 2.1).
    var percentDecoded: String? {
        utf8.contains(UInt8(ascii: "%")) ? removingPercentEncoding : String(self)
    }
}
