import COpenSSL

/// Keeps libcrypto usable until the process is gone.
///
/// Without this, libcrypto frees its tables in `exit`, while the threads of sessions still run. Their next hash or
/// handshake would then fail, and stop a program that is ending well. The setting takes effect only before libcrypto is
/// first used, so every piece of code that may use it first calls `extend`.
package enum OpenSSLLifetime {
    private static let isExtended = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil) == 1

    /// Has libcrypto outlive `exit`. The second call costs nothing.
    @inline(__always)
    package static func extend() { _ = isExtended }
}
