import COpenSSL

/// How the packets of a datagram path are protected: as strongly as their link.
package enum DatagramProtection: Equatable, Sendable {
    /// A checksum against damage, for links without TLS.
    case checksum
    case aes128
    case aes256
    case chaCha20

    /// The length of the tag at the end of a packet.
    package var tagByteCount: Int { self == .checksum ? 4 : 16 }

    var keyByteCount: Int { self == .aes128 ? 16 : 32 }

    fileprivate var cipher: OpaquePointer? {
        switch self {
        case .checksum: nil
        case .aes128: EVP_aes_128_gcm()
        case .aes256: EVP_aes_256_gcm()
        case .chaCha20: EVP_chacha20_poly1305()
        }
    }
}

/// Seals packets or opens them, for one direction of a path. The nonce is the packet's number, so a number is used
/// once.
///
/// Keys change by themselves: a range of 2^22 packet numbers, an *epoch*, has a key of its own, which follows from the
/// one before. So a path never reaches the number of packets up to which one key is safe.
///
/// For one thread at a time, because every call changes a libcrypto context.
package final class DatagramCipher {
    /// An epoch with its key.
    private struct Epoch {
        let number: UInt64
        let secret: SecretBytes
        let context: OpaquePointer
        let nonce: SecretBytes
    }

    private static let epochBits: UInt64 = 22
    static let nonceByteCount = 12
    package static let secretByteCount = 32
    /// The label under which the two sides of a link compute the secrets of its datagram path (RFC 8446, 7.5).
    static let exporterLabel = "EXPORTER-nigh datagrams 1"

    private let protection: DatagramProtection
    private let isSealing: Bool
    // Touched for every packet, by one thread at a time, so access is not checked at run time.
    /// The epoch in use, and behind it in time the one before, for packets that come late.
    @exclusivity(unchecked) private var epochs: [Epoch] = []

    /// - Parameter secret: the secret that the two sides share for this direction; nil for a checksum.
    package init(_ protection: DatagramProtection, secret: SecretBytes?, isSealing: Bool) {
        precondition(
            (secret == nil) == (protection == .checksum), "the secret and the protection do not agree")
        self.protection = protection
        self.isSealing = isSealing
        if let secret { epochs = [makeEpoch(0, secret)] }
    }

    deinit { for epoch in epochs { EVP_CIPHER_CTX_free(epoch.context) } }

    package var tagByteCount: Int { protection.tagByteCount }

    // MARK: Keys

    private func makeEpoch(_ number: UInt64, _ secret: SecretBytes) -> Epoch {
        let key = Self.derive("nigh datagrams 1 key", from: secret)
        let nonce = Self.derive("nigh datagrams 1 nonce", from: secret)
        guard let context = EVP_CIPHER_CTX_new() else { preconditionFailure("libcrypto has no memory") }
        let done = key.withBytes { key in
            isSealing
                ? EVP_EncryptInit_ex(context, protection.cipher, nil, key.baseAddress, nil)
                : EVP_DecryptInit_ex(context, protection.cipher, nil, key.baseAddress, nil)
        }
        precondition(done == 1, "libcrypto lacks the cipher of a link")
        return Epoch(number: number, secret: secret, context: context, nonce: nonce)
    }

    /// Returns 32 bytes that follow from a secret: HMAC-SHA256 of the label.
    private static func derive(_ label: StaticString, from secret: SecretBytes) -> SecretBytes {
        label.withUTF8Buffer { SHA256.authenticate(UnsafeRawBufferPointer($0), with: secret) }
    }

    /// Returns the index of the epoch of a packet number; nil if its key is not at hand any more, or not yet.
    private func index(of number: UInt64) -> Int? {
        let wanted = number >> Self.epochBits
        if let index = epochs.firstIndex(where: { $0.number == wanted }) { return index }
        guard let last = epochs.last, wanted == last.number &+ 1 else { return nil }
        epochs.append(makeEpoch(wanted, Self.derive("nigh datagrams 1 next", from: last.secret)))
        return epochs.count - 1
    }

    /// Forgets the keys of epochs whose packets have all arrived or are lost.
    private func forgetOldEpochs() {
        while epochs.count > 2 { EVP_CIPHER_CTX_free(epochs.removeFirst().context) }
    }

    // MARK: Packets

    /// Protects the first `count` bytes of `packet`. The first `headerCount` of them stay readable. Writes the tag
    /// behind them. Returns the length of the whole packet.
    package func seal(
        _ packet: UnsafeMutableRawBufferPointer, headerCount: Int, count: Int, number: UInt64
    ) -> Int {
        precondition(count + tagByteCount <= packet.count, "there is no room for the tag of a packet")
        let tag = packet.baseAddress.unsafelyUnwrapped + count
        guard protection != .checksum else {
            let sum = CRC32C.checksum(UnsafeRawBufferPointer(rebasing: packet[..<count]))
            tag.storeBytes(of: sum.bigEndian, as: UInt32.self)
            return count + tagByteCount
        }
        guard let index = index(of: number) else { preconditionFailure("packet numbers jump") }
        let epoch = epochs[index]
        let start = packet.baseAddress.unsafelyUnwrapped
        let content = start + headerCount
        var written: Int32 = 0
        let done = withNonce(epoch, number) { nonce in
            EVP_EncryptInit_ex(epoch.context, nil, nil, nil, nonce) == 1
                && EVP_EncryptUpdate(epoch.context, nil, &written, start, Int32(headerCount)) == 1
                && EVP_EncryptUpdate(
                    epoch.context, content, &written, content, Int32(count - headerCount)) == 1
                && EVP_EncryptFinal_ex(epoch.context, tag, &written) == 1
                && EVP_CIPHER_CTX_ctrl(epoch.context, EVP_CTRL_AEAD_GET_TAG, Int32(tagByteCount), tag) == 1
        }
        precondition(done, "libcrypto cannot seal a packet")
        forgetOldEpochs()
        return count + tagByteCount
    }

    /// Opens a packet in place. Returns the bytes between header and tag; nil if anybody has changed the packet, or
    /// made it.
    func open(
        _ packet: UnsafeMutableRawBufferPointer, headerCount: Int, number: UInt64
    ) -> UnsafeRawBufferPointer? {
        let count = packet.count - tagByteCount
        guard count >= headerCount else { return nil }
        let start = packet.baseAddress.unsafelyUnwrapped
        let (content, tag) = (start + headerCount, start + count)
        let opened = UnsafeRawBufferPointer(start: content, count: count - headerCount)
        guard protection != .checksum else {
            let sum = CRC32C.checksum(UnsafeRawBufferPointer(start: start, count: count))
            return UInt32(bigEndian: tag.loadUnaligned(as: UInt32.self)) == sum ? opened : nil
        }
        let known = epochs.count
        guard let index = index(of: number) else { return nil }
        let epoch = epochs[index]
        var written: Int32 = 0
        let isGenuine = withNonce(epoch, number) { nonce in
            EVP_DecryptInit_ex(epoch.context, nil, nil, nil, nonce) == 1
                && EVP_DecryptUpdate(epoch.context, nil, &written, start, Int32(headerCount)) == 1
                && EVP_DecryptUpdate(
                    epoch.context, content, &written, content, Int32(count - headerCount)) == 1
                && EVP_CIPHER_CTX_ctrl(epoch.context, EVP_CTRL_AEAD_SET_TAG, Int32(tagByteCount), tag) == 1
                && EVP_DecryptFinal_ex(epoch.context, tag, &written) == 1
        }
        if !isGenuine {
            ERR_clear_error()
            // A forged number must not make this side forget an earlier key.
            if epochs.count > known { EVP_CIPHER_CTX_free(epochs.removeLast().context) }
            return nil
        }
        forgetOldEpochs()
        return opened
    }

    private func withNonce(_ epoch: Epoch, _ number: UInt64, _ body: (UnsafePointer<UInt8>) -> Bool) -> Bool {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.nonceByteCount) { nonce in
            epoch.nonce.withBytes { base in
                for index in 0..<Self.nonceByteCount { nonce[index] = base[index] }
            }
            for index in 0..<8 {
                nonce[4 + index] ^= UInt8(truncatingIfNeeded: number >> UInt64(56 - 8 * index))
            }
            return body(UnsafePointer(nonce.baseAddress.unsafelyUnwrapped))
        }
    }
}

/// The checksum CRC-32C (Castagnoli), which finds damage and proves nothing.
enum CRC32C {
    /// Row `n` maps a byte to its part of the checksum if `n` other bytes follow it.
    private static let tables: [[UInt32]] = (1..<8).reduce(into: [table]) { tables, row in
        tables.append(tables[row - 1].map { $0 >> 8 ^ table[Int($0 & 0xFF)] })
    }

    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? value >> 1 ^ 0x82F6_3B78 : value >> 1 }
    }
    /// All rows, one behind the other.
    private static let rows: [UInt32] = tables.flatMap { $0 }

    /// Eight bytes at a time: each has a row of its own, so their look-ups do not wait for each other.
    static func checksum(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
        ~rows.withUnsafeBufferPointer { rows in
            var value = UInt32.max
            var start = 0
            while bytes.count - start >= 8 {
                let word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: start, as: UInt64.self))
                let mixed = word ^ UInt64(value)
                value = 0
                for index in 0..<8 {
                    value ^= rows[(7 - index) << 8 | Int(mixed >> UInt64(8 * index) & 0xFF)]
                }
                start += 8
            }
            for byte in bytes[start...] {
                value = rows[Int(UInt8(truncatingIfNeeded: value) ^ byte)] ^ value >> 8
            }
            return value
        }
    }
}
