import CCurl

/// The version of the libcurl that is loaded, such as `7.88.1`.
package var curlVersion: String {
    // Sound: libcurl answers with a constant of its own, valid as long as the process.
    curl_version_info(CURLVERSION_FIRST)?.pointee.version.map { String(cString: $0) } ?? ""
}
