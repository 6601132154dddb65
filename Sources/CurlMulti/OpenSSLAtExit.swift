import COpenSSL

/// Makes OpenSSL keep its memory when the process exits. By default an exit handler frees it.
///
/// libcurl's threads are not joined at exit and may still use that memory, which sometimes ended a
/// finished program with SIGABRT. The call has no effect after any other use of OpenSSL.
package func keepOpenSSLAtExit() {
    OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
}
