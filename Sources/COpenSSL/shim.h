// The system's OpenSSL 3 (Debian libssl-dev) as a Swift module.
// Wrapped here are only macros, which Swift does not import; everything else is called as it is.
#ifndef TIMELINE_GATEWAY_COPENSSL_SHIM_H
#define TIMELINE_GATEWAY_COPENSSL_SHIM_H

#include <openssl/bio.h>
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/pem.h>
#include <openssl/provider.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

// GatewayTLS: calls that OpenSSL offers as macros.
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
// The options every server context of the gateway has, spelled here because SSL_OP_BIT is a macro.
static inline uint64_t gateway_SSL_CTX_set_server_options(SSL_CTX *context) {
    return SSL_CTX_set_options(
        context,
        SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
}

// HKDF-Expand-Label of TLS 1.3 with an empty context: the parameters' names are macros.
static inline int gateway_TLS13_expand_label(
    EVP_KDF_CTX *context, const unsigned char *digest, const void *secret, size_t secret_count,
    const unsigned char *label, size_t label_count, void *output, size_t output_count) {
    int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)secret, secret_count),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PREFIX, "tls13 ", 6),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_LABEL, (void *)label, label_count),
        OSSL_PARAM_construct_end(),
    };
    return EVP_KDF_derive(context, output, output_count, parameters);
}

#endif
