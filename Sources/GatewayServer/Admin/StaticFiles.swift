import NIOCore
import NIOHTTP1

/// The files of the dashboard, embedded in the program.
enum StaticFiles {
    struct File: Sendable {
        let contentType: String
        let bytes: [UInt8]
        /// The entity tag, which differs whenever the file does.
        let etag: String

        fileprivate init(_ contentType: String, _ bytes: [UInt8]) {
            (self.contentType, self.bytes) = (contentType, bytes)
            etag = EntityTag.tag(of: bytes)
        }
    }

    private static let script = "text/javascript; charset=utf-8"

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

    static func answer(_ file: File) -> RouteResponse {
        RouteResponse(
            .ok,
            headers: [
                FieldName.contentType: file.contentType, FieldName.eTag: file.etag,
                FieldName.cacheControl: "no-cache",
            ], body: ByteBuffer(bytes: file.bytes))
    }
}
