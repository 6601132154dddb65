import COpenSSL

/// Has OpenSSL keep what it has when the process exits.
///
/// It would free it in an exit handler, while libcurl's threads, which nobody waits for then, free
/// parts of it too as they close their connections: now and then that ended a program that was done
/// with SIGABRT. Only the first use of OpenSSL can say so; where another came before, this does
/// nothing.
package func keepOpenSSLAtExit() {
    OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
}
