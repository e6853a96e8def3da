import COpenSSL
import NighCore

/// The seed of an NKey, NATS's kind of Ed25519 key: 58 letters and digits that begin with `S`.
///
/// libnats signs with a seed, but does not compute the public key, which the client has to send as well.
enum NKey {
    /// The number of characters of a seed.
    static let seedLength = 58
    /// The bytes of a seed: two that name the kind, the seed of the Ed25519 key, and a checksum.
    private static let seedBytes = 36
    /// The first byte of a user's public key, and its code in a seed.
    private static let user: UInt8 = 20 << 3
    private static let seed: UInt8 = 18 << 3

    /// Returns the public key of the user whose seed is in `text`, without the zero at its end. Nil if it is no seed of
    /// a user.
    static func publicKey(ofSeed text: SecretBytes) -> String? {
        let raw = SecretBytes(count: seedBytes)
        return text.withBytes { text in
            raw.withBytes { raw in
                guard text.count >= seedLength, decode(text.prefix(seedLength), into: raw),
                    raw[0] & 0xF8 == seed, (raw[0] & 7) << 5 | raw[1] >> 3 == user,
                    checksum(raw.prefix(34)) == UInt16(raw[34]) | UInt16(raw[35]) << 8,
                    let key = publicKey(ofSeed: UnsafeRawBufferPointer(rebasing: raw[2..<34]))
                else { return nil }
                var bytes = [user] + key
                let sum = checksum(bytes)
                bytes += [UInt8(sum & 255), UInt8(sum >> 8)]
                return encode(bytes)
            }
        }
    }

    private static func publicKey(ofSeed seed: UnsafeRawBufferPointer) -> [UInt8]? {
        OpenSSLLifetime.extend()
        let start = seed.bindMemory(to: UInt8.self).baseAddress
        guard let key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nil, start, seed.count) else {
            return nil
        }
        defer { EVP_PKEY_free(key) }
        var bytes = [UInt8](repeating: 0, count: 32)
        var count = bytes.count
        return EVP_PKEY_get_raw_public_key(key, &bytes, &count) == 1 && count == 32 ? bytes : nil
    }

    /// Decodes base 32. Returns false if `text` has another character, or another length than `bytes`.
    private static func decode(
        _ text: Slice<UnsafeMutableRawBufferPointer>, into bytes: UnsafeMutableRawBufferPointer
    ) -> Bool {
        var count = 0
        var buffer = 0
        var bits = 0
        for character in text {
            switch character {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): buffer = buffer << 5 | Int(character - 65)
            case UInt8(ascii: "2")...UInt8(ascii: "7"): buffer = buffer << 5 | Int(character - 50 + 26)
            default: return false
            }
            bits += 5
            guard bits >= 8 else { continue }
            bits -= 8
            guard count < bytes.count else { return false }
            bytes[count] = UInt8(buffer >> bits & 255)
            count += 1
            buffer &= 1 << bits - 1
        }
        return count == bytes.count
    }

    private static func encode(_ bytes: [UInt8]) -> String {
        var text = ""
        var buffer = 0
        var bits = 0
        for byte in bytes {
            buffer = buffer << 8 | Int(byte)
            bits += 8
            while bits >= 5 {
                bits -= 5
                let value = UInt8(buffer >> bits & 31)
                text.unicodeScalars.append(Unicode.Scalar(value < 26 ? 65 + value : 50 + value - 26))
            }
            buffer &= 1 << bits - 1
        }
        return text
    }

    /// CRC-16 of XMODEM.
    private static func checksum(_ bytes: some Collection<UInt8>) -> UInt16 {
        bytes.reduce(0) { sum, byte in
            (0..<8).reduce(sum ^ UInt16(byte) << 8) { sum, _ in
                sum & 0x8000 == 0 ? sum << 1 : sum << 1 ^ 0x1021
            }
        }
    }
}
