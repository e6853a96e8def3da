import COpenSSL

/// Keeps libcrypto usable until the process is gone.
///
/// By itself libcrypto frees its tables in `exit`, while the threads of sessions still run. Their next hash or handshake would fail,
/// and stop a program that is ending well. It takes this wish only before its first use, so whatever may be the first use
/// in a program asks for it.
enum OpenSSLLifetime {
    private static let isExtended = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil) == 1

    /// Has libcrypto outlive `exit`. The second call costs nothing.
    @inline(__always)
    static func extend() { _ = isExtended }
}
