import COpenSSL

/// An Ed25519 key pair in libcrypto, which creates, reads, writes and uses the keys.
///
/// The private key leaves libcrypto's memory only as PKCS#8 text on its way to a file. libcrypto overwrites it when the
/// last reference to the key is freed.
///
/// `@unchecked Sendable`: the key never changes, and libcrypto counts its references atomically.
package final class KeyPair: @unchecked Sendable {
    static let seedByteCount = 32
    static let publicByteCount = 32

    private let pointer: OpaquePointer

    private init(owning pointer: OpaquePointer) { self.pointer = pointer }

    deinit { EVP_PKEY_free(pointer) }

    /// Calls `body` with the key as libcrypto's `EVP_PKEY`, which is valid during the call. To
    /// keep it longer, call `EVP_PKEY_up_ref`.
    func withPointer<Result, Failure: Error>(
        _ body: (OpaquePointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        defer { withExtendedLifetime(self) {} }
        return try body(pointer)
    }

    /// Creates a new pair from the system's random numbers.
    package static func random() throws(NighError) -> KeyPair {
        OpenSSLLifetime.extend()
        let context = EVP_PKEY_CTX_new_id(EVP_PKEY_ED25519, nil)
        defer { EVP_PKEY_CTX_free(context) }
        var pointer: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_keygen(context, &pointer) == 1, let pointer else {
            throw failure("cannot make an Ed25519 key")
        }
        return KeyPair(owning: pointer)
    }

    /// Creates the pair that belongs to a seed of 32 bytes (RFC 8032).
    convenience init(seed: SecretBytes) throws(NighError) {
        precondition(seed.count == Self.seedByteCount)
        OpenSSLLifetime.extend()
        let pointer = seed.withBytes { bytes in
            EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nil, bytes.baseAddress, bytes.count)
        }
        guard let pointer else { throw Self.failure("cannot make an Ed25519 key of a seed") }
        self.init(owning: pointer)
    }

    /// Why PEM text is not accepted as a key pair.
    package enum PEMFault: Error {
        /// It contains no readable private key.
        case damaged
        /// Its key is encrypted with a password.
        case encrypted
        /// It contains something other than an Ed25519 private key.
        case anotherKind(String)
    }

    /// Reads PKCS#8 in PEM.
    ///
    /// It does so step by step, because libcrypto's single function for this asks for passwords on the terminal, and in
    /// version 3.0 frees copies of the key without overwriting them.
    package convenience init(pem: SecretBytes) throws(PEMFault) {
        OpenSSLLifetime.extend()
        let (label, encoded) = try Self.block(pem)
        guard label == PEM_STRING_PKCS8INF else {
            throw label == PEM_STRING_PKCS8 ? .encrypted : .anotherKind(label)
        }
        let info = encoded.withBytes { bytes in
            var position = UnsafePointer(bytes.assumingMemoryBound(to: UInt8.self).baseAddress)
            return d2i_PKCS8_PRIV_KEY_INFO(nil, &position, bytes.count)
        }
        defer {
            PKCS8_PRIV_KEY_INFO_free(info)
            ERR_clear_error()
        }
        var algorithm: OpaquePointer?
        var octets: UnsafePointer<UInt8>?
        var count: Int32 = 0
        guard let info, PKCS8_pkey_get0(&algorithm, &octets, &count, nil, info) == 1, let octets else {
            throw .damaged
        }
        let kind = OBJ_obj2nid(algorithm)
        guard kind == EVP_PKEY_ED25519 else {
            throw .anotherKind(OBJ_nid2ln(kind).map { String(cString: $0) } ?? "unknown")
        }
        // RFC 8410: the seed is an octet string inside the key's octet string.
        guard count == 2 + Self.seedByteCount, octets[0] == 0x04, octets[1] == UInt8(Self.seedByteCount),
            let pointer = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nil, octets + 2, Self.seedByteCount)
        else { throw .damaged }
        self.init(owning: pointer)
    }

    /// Returns the label in the BEGIN line of the first PEM block, and the block's content.
    private static func block(_ pem: SecretBytes) throws(PEMFault) -> (label: String, content: SecretBytes) {
        var label: UnsafeMutablePointer<CChar>?
        var header: UnsafeMutablePointer<CChar>?
        var content: UnsafeMutablePointer<UInt8>?
        var count = 0
        let flags = UInt32(PEM_FLAG_SECURE | PEM_FLAG_EAY_COMPATIBLE)
        let done = pem.withBytes { bytes in
            let source = BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: bytes.count))
            defer {
                BIO_free(source)
                ERR_clear_error()
            }
            return PEM_read_bio_ex(source, &label, &header, &content, &count, flags)
        }
        guard done == 1, let label, let content else { throw .damaged }
        defer {
            CRYPTO_secure_free(label, #file, #line)
            CRYPTO_secure_free(header, #file, #line)
            CRYPTO_secure_clear_free(content, count, #file, #line)
        }
        let copy = SecretBytes(count: count)
        copy.withBytes { $0.copyMemory(from: UnsafeRawBufferPointer(start: content, count: count)) }
        return (String(cString: label), copy)
    }

    /// Returns the pair as PKCS#8 in PEM, without a password.
    package func pem() throws(NighError) -> SecretBytes {
        try text(of: "PKCS#8") { PEM_write_bio_PKCS8PrivateKey($0, pointer, nil, nil, 0, nil, nil) }
    }

    /// Returns the public key as SubjectPublicKeyInfo in PEM.
    func publicPEM() throws(NighError) -> String {
        try text(of: "SubjectPublicKeyInfo") { PEM_write_bio_PUBKEY($0, pointer) }
            .withBytes { String(decoding: $0, as: UTF8.self) }
    }

    private func text(of form: String, _ write: (OpaquePointer?) -> Int32) throws(NighError) -> SecretBytes {
        let sink = BIO_new(BIO_s_mem())
        defer { BIO_free(sink) }
        guard write(sink) == 1 else { throw Self.failure("cannot write a key as \(form)") }
        let text = SecretBytes(count: BIO_ctrl_pending(sink))
        let count = text.withBytes { BIO_read(sink, $0.baseAddress, Int32($0.count)) }
        guard count == text.count else { throw Self.failure("cannot write a key as \(form)") }
        return text
    }

    /// The 32 bytes of the public key.
    var publicKey: [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Self.publicByteCount) { bytes, count in
            count = bytes.count
            let done = EVP_PKEY_get_raw_public_key(pointer, bytes.baseAddress, &count)
            precondition(done == 1 && count == Self.publicByteCount, "an Ed25519 key without its public half")
        }
    }

    private static func failure(_ what: String) -> NighError {
        ERR_clear_error()
        return NighError(
            .identity, .unavailable("libcrypto \(what)"),
            advice: "check that `openssl genpkey -algorithm ed25519` works on this machine")
    }
}

extension PeerID {
    /// Creates the PeerID of the Ed25519 key `key`, an `EVP_PKEY` such as a certificate's: the SHA-256 of its
    /// SubjectPublicKeyInfo in DER. Returns nil for a key of another kind, and for one that is not sound.
    init?(key: OpaquePointer) {
        guard EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 else { return nil }
        var bytes = [UInt8](repeating: 0, count: KeyPair.publicByteCount)
        var count = bytes.count
        guard EVP_PKEY_get_raw_public_key(key, &bytes, &count) == 1, count == bytes.count else {
            ERR_clear_error()
            return nil
        }
        self.init(rawPublicKey: bytes)
    }

    /// Creates the PeerID of an Ed25519 public key. Returns nil unless the key has 32 bytes and is sound.
    public init?(publicKey: some Collection<UInt8>) { self.init(rawPublicKey: Array(publicKey)) }

    /// The bytes before the 32 key bytes in the DER form of an Ed25519 SubjectPublicKeyInfo (RFC 8410, 4). libcrypto
    /// would search for an encoder each time, which takes longer than a signature.
    private static let infoBeforeKey: [UInt8] = [
        0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
    ]

    private init?(rawPublicKey bytes: [UInt8]) {
        guard bytes.count == KeyPair.publicByteCount, KeyPair.isSound(publicKey: bytes) else { return nil }
        let info = Self.infoBeforeKey + bytes
        self.init(bytes: info.withUnsafeBytes { SHA256.hash($0) })
    }
}

extension KeyPair {
    /// The y coordinates of the points of small order, as little-endian numbers: 0, 1, p - 1, and two of order 8.
    private static let smallOrders: [[UInt8]] = [
        [UInt8](repeating: 0, count: 32), [1] + [UInt8](repeating: 0, count: 31),
        [0xec] + [UInt8](repeating: 0xff, count: 30) + [0x7f],
        [
            0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0,
            0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
        ],
        [
            0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f,
            0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
        ],
    ]

    /// Whether a public key of 32 bytes belongs to somebody: signatures by a key of small order can be made without a
    /// private key, and a key with a second encoding would have two PeerIDs.
    static func isSound(publicKey: [UInt8]) -> Bool {
        var y = publicKey
        y[31] &= 0x7f
        // At least p = 2^255 - 19.
        let isReduced = y[0] < 0xed || y[31] != 0x7f || y[1..<31].contains { $0 != 0xff }
        return isReduced && !smallOrders.contains(y)
    }
}
