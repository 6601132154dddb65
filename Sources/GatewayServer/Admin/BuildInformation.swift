import CurlMulti
import GatewayDelivery
import GatewaySigning
import GatewayStorage
import WidgetModel

/// The versions of the running program and its libraries.
enum BuildInformation {
    /// The toolchain that compiled it.
    static var swift: String {
        #if swift(>=6.4)
            "6.4 or later"
        #elseif swift(>=6.3)
            "6.3"
        #else
            "6.2"
        #endif
    }

    /// The names and values of the labels of `timeline_gateway_build_info`.
    static var all: [(name: String, value: String)] {
        [
            ("version", productVersion), ("swift", swift), ("openssl", openSSLVersion),
            ("libcurl", curlVersion), ("nghttp2", nghttp2Version), ("sqlite", sqliteVersion),
        ]
    }

    /// The document of `/version`.
    static var document: JSONMap<String> { JSONMap(all) }
}
