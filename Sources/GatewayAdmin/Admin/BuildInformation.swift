import CurlMulti
import GatewayDelivery
import GatewayEngine
import GatewaySigning
import GatewayStorage
import WidgetModel

/// What runs.
enum BuildInformation {
    /// The toolchain it was compiled with.
    static var swift: String {
        #if swift(>=6.4)
            "6.4 or later"
        #elseif swift(>=6.3)
            "6.3"
        #else
            "6.2"
        #endif
    }

    /// The same as the labels of `timeline_gateway_build_info`: names and values.
    static var all: [(name: String, value: String)] {
        [
            ("version", productVersion), ("swift", swift), ("openssl", openSSLVersion),
            ("libcurl", curlVersion), ("nghttp2", nghttp2Version), ("sqlite", sqliteVersion),
        ]
    }

    /// The document of `/version`.
    static var document: JSONMap<String> { JSONMap(all) }
}
