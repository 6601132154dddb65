// The system's OpenSSL 3 (Debian libssl-dev) as a Swift module.
// Wrapped here are only macros, which Swift does not import; everything else is called as it is.
#ifndef TIMELINE_GATEWAY_COPENSSL_SHIM_H
#define TIMELINE_GATEWAY_COPENSSL_SHIM_H

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#endif
