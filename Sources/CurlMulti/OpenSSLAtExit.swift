import COpenSSL

/// Makes OpenSSL keep its memory when the process exits.
///
/// By default an exit handler frees it, while libcurl's threads, which are not joined at exit, may
/// still be closing connections and freeing parts of it too; now and then that ended a finished
/// program with SIGABRT. Only the first use of OpenSSL can set this, so the call has no effect
/// after any other.
package func keepOpenSSLAtExit() {
    OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
}
