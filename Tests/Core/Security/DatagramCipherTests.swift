import Testing

@testable import NighCore

@Suite("The protection of packets") struct DatagramCipherTests {
    private static let all: [DatagramProtection] = [.checksum, .aes128, .aes256, .chaCha20]

    private func secret(_ first: UInt8) -> SecretBytes {
        let secret = SecretBytes(count: DatagramCipher.secretByteCount)
        secret.withBytes { bytes in for index in bytes.indices { bytes[index] = first &+ UInt8(index) } }
        return secret
    }

    private func cipher(_ kind: DatagramProtection, _ first: UInt8, isSealing: Bool) -> DatagramCipher {
        DatagramCipher(kind, secret: kind == .checksum ? nil : secret(first), isSealing: isSealing)
    }

    private func seal(_ text: [UInt8], _ number: UInt64, with cipher: DatagramCipher) -> [UInt8] {
        var packet = [UInt8](repeating: 0, count: 16 + text.count + cipher.tagByteCount)
        packet.withUnsafeMutableBytes { bytes in
            DatagramPacket.writeHeader(connection: 0x0102_0304_0506_0708, number: number, to: bytes)
            UnsafeMutableRawBufferPointer(rebasing: bytes[16...]).copyBytes(from: text)
            _ = cipher.seal(bytes, headerCount: 16, count: 16 + text.count, number: number)
        }
        return packet
    }

    private func open(_ packet: [UInt8], _ number: UInt64, with cipher: DatagramCipher) -> [UInt8]? {
        var packet = packet
        return packet.withUnsafeMutableBytes { bytes in
            cipher.open(bytes, headerCount: 16, number: number).map { Array($0) }
        }
    }

    @Test(arguments: all) func `gives back what was sealed, and nothing that was changed in any bit`(
        _ kind: DatagramProtection
    ) {
        let (sealing, opening) = (cipher(kind, 1, isSealing: true), cipher(kind, 1, isSealing: false))
        for count in [0, 1, 15, 16, 17, 1_000] {
            let text = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
            let packet = seal(text, 7, with: sealing)
            #expect(open(packet, 7, with: opening) == text)
            #expect(kind == .checksum || count < 8 || !packet.dropFirst(16).starts(with: text))
            for position in stride(from: 0, to: packet.count, by: max(1, packet.count / 40)) {
                var damaged = packet
                damaged[position] ^= 1 << (position % 8)
                #expect(open(damaged, 7, with: opening) == nil)
            }
            #expect(kind == .checksum || open(packet, 8, with: opening) == nil)
        }
        #expect(open(Array(repeating: 0, count: 17), 0, with: opening) == nil)
    }

    @Test(arguments: all.dropFirst()) func `opens nothing that another key has sealed`(
        _ kind: DatagramProtection
    ) {
        let packet = seal([1, 2, 3], 0, with: cipher(kind, 1, isSealing: true))
        #expect(open(packet, 0, with: cipher(kind, 2, isSealing: false)) == nil)
    }

    @Test(arguments: all)
    func `changes keys by itself, and opens what comes late from the time of the last key`(
        _ kind: DatagramProtection
    ) {
        let (sealing, opening) = (cipher(kind, 1, isSealing: true), cipher(kind, 1, isSealing: false))
        let change: UInt64 = 1 << 22
        let late = seal([1], change - 2, with: sealing)
        let last = seal([2], change - 1, with: sealing)
        let first = seal([3], change, with: sealing)
        let next = seal([4], 2 * change, with: sealing)
        #expect(open(last, change - 1, with: opening) == [2])
        // A forged number of the next key changes nothing.
        var forged = first
        forged[20] ^= 1
        #expect(open(forged, change, with: opening) == nil)
        #expect(open(first, change, with: opening) == [3])
        #expect(open(late, change - 2, with: opening) == [1])
        #expect(open(next, 2 * change, with: opening) == [4])
        guard kind != .checksum else { return }
        #expect(open(late, change - 2, with: opening) == nil)
        // A key that lies two changes ahead is not computed for a stranger's packet.
        #expect(open(next, 4 * change, with: opening) == nil)
    }

    @Test func `is what docs/reference/PROTOCOL.md shows, section 4.7`() throws {
        let words = try ProtocolPage().section("4.7").compactMap { $0.split(separator: " ").last }
        let shown = words.filter { $0.count > 20 && $0.allSatisfy(\.isHexDigit) }
            .map { [UInt8](hexadecimal: String($0)) }
        let kinds: [DatagramProtection] = [.aes128, .aes256, .chaCha20, .checksum]
        let content: [UInt8] = [3, 0] + "hello".utf8
        let sealed = kinds.flatMap { kind in
            [1, 1 << 22].map {
                Array(seal(content, $0, with: cipher(kind, 0, isSealing: true)).dropFirst(16))
            }
        }
        #expect(sealed == shown)
    }
}
