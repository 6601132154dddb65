import HTTPTypes
import Hummingbird
import NIOCore
import WidgetModel

/// The files of the dashboard, as they are in the program.
enum StaticFiles {
    /// A file.
    struct File: Sendable {
        let contentType: String
        let bytes: [UInt8]
        /// Differs when the file does.
        let etag: String
        /// The content type without parameters.
        var mediaType: String { MediaType(contentType).essence }

        fileprivate init(_ contentType: String, _ bytes: [UInt8]) {
            (self.contentType, self.bytes) = (contentType, bytes)
            // FNV-1a: it has to differ between two releases, not to withstand anybody.
            var hash: UInt64 = 0xcbf2_9ce4_8422_2325
            for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
            etag = "\"" + String(hash, radix: 16) + "\""
        }
    }

    /// What pages of this port may do (Content Security Policy Level 3): load the port's own scripts
    /// and styles, and ask the port itself.
    static let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        + "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

    private static let script = "text/javascript; charset=utf-8"

    /// All of them, by path.
    static let files: [String: File] = [
        "/": File("text/html; charset=utf-8", PackageResources.index_html),
        "/app.css": File("text/css; charset=utf-8", PackageResources.app_css),
        "/icon.svg": File("image/svg+xml", PackageResources.icon_svg),
        "/app.js": File(script, PackageResources.app_js),
        "/actions.js": File(script, PackageResources.actions_js),
        "/chart.js": File(script, PackageResources.chart_js),
        "/changes.js": File(script, PackageResources.changes_js),
        "/clients.js": File(script, PackageResources.clients_js),
        "/dom.js": File(script, PackageResources.dom_js),
        "/overview.js": File(script, PackageResources.overview_js),
        "/deliveries.js": File(script, PackageResources.deliveries_js),
        "/gateway.js": File(script, PackageResources.gateway_js),
        "/kinds.js": File(script, PackageResources.kinds_js),
        "/system.js": File(script, PackageResources.system_js),
        "/words.js": File(script, PackageResources.words_js),
    ]

    /// The file at a path.
    static func file(_ path: String) -> File? { files[path] }

    /// The answer to a request for a file; what a browser has already is not sent again.
    static func answer(_ file: File, ifNoneMatch: [String]) -> Response {
        let headers: HTTPFields = [
            .contentType: file.contentType, .eTag: file.etag, .cacheControl: "no-cache",
        ]
        let known = ifNoneMatch.flatMap { $0.split(separator: ",") }.map {
            String($0.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
        }
        guard !known.contains(file.etag), !known.contains("W/" + file.etag) else {
            return Response(status: .notModified, headers: headers)
        }
        return Response(
            status: .ok, headers: headers,
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: file.bytes)))
    }
}
