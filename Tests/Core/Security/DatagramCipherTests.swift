import FoundationEssentials
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

    @Test("gives back what was sealed, and nothing that was changed in any bit", arguments: all)
    func changes(_ kind: DatagramProtection) {
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

    @Test("opens nothing that another key has sealed", arguments: all.dropFirst())
    func otherKey(_ kind: DatagramProtection) {
        let packet = seal([1, 2, 3], 0, with: cipher(kind, 1, isSealing: true))
        #expect(open(packet, 0, with: cipher(kind, 2, isSealing: false)) == nil)
    }

    @Test("changes keys by itself, and opens what comes late from the time of the last key", arguments: all)
    func epochs(_ kind: DatagramProtection) {
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

    @Test("is what docs/reference/PROTOCOL.md shows, section 4.7", arguments: all)
    func vectors(_ kind: DatagramProtection) throws {
        let (first, later) =
            switch kind {
            case .aes128:
                (
                    "a940b0dbfc0e52f4bf4dc2e36c7cec6455c530826278ef",
                    "fc0429a60e7294923d7bb1725dc265f41e47a90596bd61"
                )
            case .aes256:
                (
                    "02db7c0fc926043fd389954c6e895df848832b1d3904c2",
                    "1185c393e72ebdfb4a3d3529462d1b5a549320b2a60aaf"
                )
            case .chaCha20:
                (
                    "85a00030d711dfbd613b9cabdc744ebead618667b43d73",
                    "4acea8f489894dd29c24d892d567af67989177006e4778"
                )
            case .checksum: ("030068656c6c6f081fdb58", "030068656c6c6f7c2c13ed")
            }
        let content: [UInt8] = [3, 0] + "hello".utf8
        for (number, shown) in [(1, first), (1 << 22, later)] as [(UInt64, String)] {
            let packet = seal(content, number, with: cipher(kind, 0, isSealing: true))
            let hex = packet.dropFirst(16).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }
            #expect(hex.joined() == shown)
            #expect(try Self.page.contains(shown))
        }
    }

    private static var page: String {
        get throws {
            let root = "\(#filePath)".split(separator: "/").dropLast(4).reduce("") { "\($0)/\($1)" }
            return try String(contentsOfFile: "\(root)/docs/reference/PROTOCOL.md", encoding: .utf8)
        }
    }
}
