import NighRelays
import Testing

@testable import NighCore

@Suite("The page of the protocol, about pipes through a peer")
struct RelayProtocolPageTests {
    private static let section = "4.10 Pipes through a peer"

    /// A frame of a stream, as both ends read it.
    private enum Said: Equatable {
        case open(RelayStreamName)
        case bytes([UInt8])
    }

    private func read(_ frame: [UInt8]) throws -> Said {
        let header = frame.withUnsafeBytes { FrameHeader(readingFrom: $0.baseAddress.unsafelyUnwrapped) }
        let payload = Array(frame.dropFirst(FrameHeader.byteCount))
        try #require(header.payloadLength == payload.count)
        let content = try payload.withUnsafeBytes { bytes throws(WireError) in
            try FrameContent(type: header.type, reading: bytes)
        }
        switch content {
        case .streamControl(let control):
            guard case .open(let name, .relay) = control.control else { break }
            return .open(try RelayStreamName(name))
        case .streamData(1, _): return .bytes(Array(payload.dropFirst(4)))
        default: break
        }
        throw ProtocolPage.Missing(what: "a frame of a stream for relays: \(content)")
    }

    @Test("has an example whose frames open the pipe that it describes")
    func example() throws {
        let (lynx, hare) = (Identity.ephemeral(seed: 2).peerID, Identity.ephemeral(seed: 3).peerID)
        let preface = Said.bytes([0x4E, 0x49, 0x47, 0x48, 1, 2, 0, 0])
        let steps = try ProtocolPage().example(in: Self.section)
        let said = try steps.map { try read(try #require($0.bytes.exact)) }
        #expect(
            said == [
                .open(.to(hare)), .open(.from(lynx)), .bytes([1]), preface, .bytes([1]), preface, preface,
            ])
        #expect(steps.map(\.isDialling) == [true, true, false, false, false, false, true])
    }
}
