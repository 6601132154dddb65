// The system's libcurl (Debian libcurl4-openssl-dev) as a Swift module.
// Wrapped here are only the variadic functions, which Swift does not import.
#ifndef TIMELINE_GATEWAY_CCURL_SHIM_H
#define TIMELINE_GATEWAY_CCURL_SHIM_H

#include <curl/curl.h>

// curl_easy_setopt, curl_easy_getinfo and curl_multi_setopt, once per type of their variadic
// argument, so that the compiler checks it.
static inline CURLcode client_curl_set_long(CURL *handle, CURLoption option, long value) {
    return curl_easy_setopt(handle, option, value);
}
static inline CURLcode client_curl_set_text(CURL *handle, CURLoption option, const char *value) {
    return curl_easy_setopt(handle, option, value);
}
static inline CURLcode client_curl_set_pointer(CURL *handle, CURLoption option, void *value) {
    return curl_easy_setopt(handle, option, value);
}
static inline CURLcode client_curl_set_list(
    CURL *handle, CURLoption option, struct curl_slist *value) {
    return curl_easy_setopt(handle, option, value);
}
static inline CURLcode client_curl_set_body(CURL *handle, const void *bytes, curl_off_t count) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, count);
    return code != CURLE_OK ? code : curl_easy_setopt(handle, CURLOPT_COPYPOSTFIELDS, bytes);
}
static inline CURLcode client_curl_set_callback(
    CURL *handle, CURLoption option,
    size_t (*callback)(char *bytes, size_t size, size_t count, void *context)) {
    return curl_easy_setopt(handle, option, callback);
}
static inline CURLcode client_curl_set_blob(
    CURL *handle, CURLoption option, const void *bytes, size_t count) {
    struct curl_blob blob = {(void *)bytes, count, CURL_BLOB_COPY};
    return curl_easy_setopt(handle, option, &blob);
}
static inline CURLcode client_curl_set_open_callback(
    CURL *handle,
    curl_socket_t (*callback)(void *context, curlsocktype purpose, struct curl_sockaddr *address)) {
    return curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, callback);
}
static inline CURLcode client_curl_set_close_callback(
    CURL *handle, int (*callback)(void *context, curl_socket_t socket)) {
    return curl_easy_setopt(handle, CURLOPT_CLOSESOCKETFUNCTION, callback);
}
static inline CURLcode client_curl_set_request_callback(
    CURL *handle,
    int (*callback)(void *context, char *to, char *from, int to_port, int from_port)) {
    return curl_easy_setopt(handle, CURLOPT_PREREQFUNCTION, callback);
}
static inline CURLcode client_curl_set_tls_callback(
    CURL *handle, CURLcode (*callback)(CURL *handle, void *tls_context, void *context)) {
    return curl_easy_setopt(handle, CURLOPT_SSL_CTX_FUNCTION, callback);
}
static inline CURLMcode client_curl_multi_set_long(CURLM *handle, CURLMoption option, long value) {
    return curl_multi_setopt(handle, option, value);
}
static inline CURLMcode client_curl_multi_set_socket_callback(
    CURLM *handle,
    int (*callback)(CURL *easy, curl_socket_t socket, int interest, void *context, void *unused),
    void *context) {
    CURLMcode code = curl_multi_setopt(handle, CURLMOPT_SOCKETDATA, context);
    return code != CURLM_OK ? code : curl_multi_setopt(handle, CURLMOPT_SOCKETFUNCTION, callback);
}
static inline CURLMcode client_curl_multi_set_timer_callback(
    CURLM *handle, int (*callback)(CURLM *handle, long milliseconds, void *context),
    void *context) {
    CURLMcode code = curl_multi_setopt(handle, CURLMOPT_TIMERDATA, context);
    return code != CURLM_OK ? code : curl_multi_setopt(handle, CURLMOPT_TIMERFUNCTION, callback);
}
static inline CURLcode client_curl_get_socket(CURL *handle, curl_socket_t *value) {
    return curl_easy_getinfo(handle, CURLINFO_ACTIVESOCKET, value);
}
// OpenSSL's `SSL` of the connection, or NULL.
static inline void *client_curl_get_tls(CURL *handle) {
    struct curl_tlssessioninfo *session = NULL;
    CURLcode code = curl_easy_getinfo(handle, CURLINFO_TLS_SSL_PTR, &session);
    return code == CURLE_OK && session ? session->internals : NULL;
}
// The `errno` of the last failure to connect; 0 for none.
static inline long client_curl_get_system_error(CURL *handle) {
    long value = 0;
    return curl_easy_getinfo(handle, CURLINFO_OS_ERRNO, &value) == CURLE_OK ? value : 0;
}
static inline void *client_curl_get_context(CURL *handle) {
    char *context = NULL;
    return curl_easy_getinfo(handle, CURLINFO_PRIVATE, &context) == CURLE_OK ? context : NULL;
}

#endif
