import CCurl

/// The version of the libcurl that is loaded, such as `7.88.1`.
package var curlVersion: String {
    // Sound: libcurl returns a constant of its own, valid for the life of the process.
    curl_version_info(CURLVERSION_FIRST)?.pointee.version.map { String(cString: $0) } ?? ""
}
