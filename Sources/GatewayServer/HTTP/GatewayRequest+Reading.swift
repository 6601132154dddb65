import Foundation
import NIOCore
import NIOHTTP1
import WidgetModel

extension GatewayRequest {
    /// A field's value; several fields of one name are one list (RFC 9110 section 5.3).
    package func header(_ name: String) -> String? { head.headers.value(name) }

    /// The query's parameters, decoded, in order. Throws 400 if a part is not percent-encoded UTF-8
    /// or contains control characters.
    func query() throws -> [(name: String, value: String)] {
        try QueryText.parameters(PathSegments(head.uri).query)
    }

    /// The value of a query parameter. Throws 400 as ``query()`` does, and if it is given twice.
    package func queryValue(_ name: String) throws -> String? {
        let values = try query().filter { $0.name == name }.map(\.value)
        guard values.count <= 1 else {
            throw Problem.malformed("The query contains `\(name)` more than once.")
        }
        return values.first
    }

    /// Requires that the client accepts `mediaType` (RFC 9110 section 12.5.1). Throws 406.
    func requireAcceptable(_ mediaType: String) throws {
        let ranges = head.headers.values(FieldName.accept).flatMap { $0.split(separator: ",") }
            .map { MediaType(String($0)).essence }
        let essence = MediaType(mediaType).essence
        let family = essence.prefix { $0 != "/" } + "/*"
        guard
            ranges.isEmpty
                || ranges.contains(where: { $0 == "*/*" || $0 == essence || $0 == family })
        else { throw Problem.notAcceptable("This resource is only available as \(essence).") }
    }

    /// Reads the whole body; a larger one is rejected before more than `limit` bytes are stored.
    /// Its bytes count against the budget of request bodies until the request has its response. The
    /// rest of a large body is reserved in one step: bodies in progress then rarely wait for each
    /// other.
    ///
    /// - Throws: 413; 415 if it is encoded; 503 if the budget is exhausted.
    func bytes(upTo limit: Int) async throws -> [UInt8] {
        try requireNotEncoded()
        func require(_ isWithin: Bool) throws {
            guard isWithin else {
                throw Problem.tooLarge("At most \(limit) bytes are allowed here.")
            }
        }
        switch body {
        case .whole(let buffer):
            guard let buffer else { return [] }
            try require(buffer.readableBytes <= limit)
            try await account?.reserve(buffer.readableBytes)
            account?.charge(buffer.readableBytes)
            return Array(buffer.readableBytesView)
        case .pieces(let pieces, let demand):
            let length = header(FieldName.contentLength).flatMap { Int($0) }
            if let length { try require(length <= limit) }
            var reserved = 0
            var bytes: [UInt8] = []
            for try await buffer in pieces {
                let count = bytes.count + buffer.readableBytes
                try require(count <= limit)
                if count > reserved {
                    let isSmall = count <= RequestLimits.smallBodyMax
                    let next = isSmall ? reserved + 4_096 : length ?? 2 * reserved
                    let total = max(count, min(next, length ?? limit))
                    // The body is not read further from the connection while it waits.
                    try await account?.reserve(total - reserved)
                    if !isSmall {
                        demand.permit(total - reserved)
                        bytes.reserveCapacity(total)
                    }
                    reserved = total
                }
                bytes.append(contentsOf: buffer.readableBytesView)
            }
            account?.charge(bytes.count)
            return bytes
        }
    }

    /// Requires that the body has no content coding, which could multiply its size. Throws 415.
    private func requireNotEncoded() throws(ProblemDetails) {
        guard let codings = header(FieldName.contentEncoding) else { return }
        let isPlain = codings.split(separator: ",").allSatisfy {
            String($0).fieldValue.lowercased() == "identity"
        }
        guard isPlain else { throw Problem.unsupportedContentEncoding(codings) }
    }

    /// Reads a small body as JSON; for large ones, see ``DocumentWork``. Throws 400, 413, 415.
    func json(upTo limit: Int) async throws -> JSONValue {
        try Self.json(try await jsonBytes(upTo: limit))
    }

    /// Reads the body, which must be declared as JSON. Throws 413, 415.
    func jsonBytes(upTo limit: Int) async throws -> [UInt8] {
        let contentType = header(FieldName.contentType)
        guard let contentType, MediaType(contentType).isJSON else {
            throw Problem.unsupportedMediaType(
                contentType == nil
                    ? "Content-Type is missing; send application/json" : "send application/json")
        }
        return try await bytes(upTo: limit)
    }

    /// Parses a body. Throws 400.
    static func json(_ bytes: [UInt8]) throws -> JSONValue {
        do throws(JSONFault) {
            return try JSONValue(parsing: bytes)
        } catch {
            throw Problem.malformed("The body is not JSON: \(error)")
        }
    }
}

enum QueryText {
    /// The maximum number of parameters; more are rejected.
    private static let parametersMax = 64

    /// The parameters of a query, decoded, in order. Throws 400 if a part is not percent-encoded
    /// UTF-8 or contains control characters.
    static func parameters(
        _ query: String
    ) throws(ProblemDetails) -> [(name: String, value: String)] {
        let parts = query.split(separator: "&")
        guard parts.count <= parametersMax else {
            throw Problem.malformed("The query has more than \(parametersMax) parameters.")
        }
        var parameters: [(name: String, value: String)] = []
        for part in parts {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = pair[0].percentDecoded,
                let value = pair.count > 1 ? pair[1].percentDecoded : "",
                !(name + value).utf8.contains(where: { $0 < 0x20 || $0 == 0x7F })
            else {
                throw Problem.malformed(
                    "The query must be percent-encoded UTF-8 without control characters.")
            }
            parameters.append((name, value))
        }
        return parameters
    }
}
