// The system's OpenSSL 3 (Debian libssl-dev) as a Swift module.
// Wrapped here are only macros, which Swift does not import; everything else is called as it is.
#ifndef TIMELINE_GATEWAY_COPENSSL_SHIM_H
#define TIMELINE_GATEWAY_COPENSSL_SHIM_H

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

// Calls that OpenSSL offers as macros.
static inline long gateway_SSL_CTX_set_mode(SSL_CTX *context, long mode) {
    return SSL_CTX_set_mode(context, mode);
}
static inline long gateway_SSL_CTX_set_version_range(SSL_CTX *context, int lowest, int highest) {
    return SSL_CTX_set_min_proto_version(context, lowest) == 1
        && SSL_CTX_set_max_proto_version(context, highest) == 1;
}
static inline long gateway_SSL_CTX_set_session_cache_mode(SSL_CTX *context, long mode) {
    return SSL_CTX_set_session_cache_mode(context, mode);
}
static inline long gateway_SSL_CTX_add1_chain_cert(SSL_CTX *context, X509 *certificate) {
    return SSL_CTX_add1_chain_cert(context, certificate);
}
static inline long gateway_SSL_CTX_set1_groups_list(SSL_CTX *context, const char *groups) {
    return SSL_CTX_set1_groups_list(context, (char *)groups);
}
static inline void gateway_SSL_CTX_set_read_ahead(SSL_CTX *context, int isOn) {
    SSL_CTX_set_read_ahead(context, isOn);
}
// The options every server context of the gateway has, spelled here because SSL_OP_BIT is a macro.
static inline uint64_t gateway_SSL_CTX_set_server_options(SSL_CTX *context) {
    return SSL_CTX_set_options(
        context,
        SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
}

#endif
