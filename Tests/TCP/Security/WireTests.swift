import NighTestKit
import NighUV
import Testing

@testable import NighCore
@testable import NighTCP

/// Tests what a passive listener sees of the whole stream of a conversation.
@Suite struct WireTests {
    /// Passes everything on, and records it.
    private final class Listener: Middleman, @unchecked Sendable {
        private let monitor = Monitor()
        private var recorded: (dialling: [UInt8], accepting: [UInt8]) = ([], [])

        var streams: [[UInt8]] { monitor.read { [recorded.dialling, recorded.accepting] } }

        func received(_ bytes: [UInt8], from side: LinkSide) -> Relay.Output {
            monitor.change {
                if side == .dialling { recorded.dialling += bytes } else { recorded.accepting += bytes }
                return .on(bytes, from: side)
            }
        }
    }

    /// The types of the TLS records in `bytes`, or nil if there is anything else in them.
    private func records(_ bytes: ArraySlice<UInt8>) -> [UInt8]? {
        var kinds: [UInt8] = []
        var rest = bytes
        while !rest.isEmpty {
            let header = Array(rest.prefix(5))
            guard header.count == 5, header[1] == 3, header[2] == 1 || header[2] == 3 else { return nil }
            let length = Int(header[3]) << 8 + Int(header[4])
            guard length <= 16_384 + 256, rest.count >= 5 + length else { return nil }
            kinds.append(header[0])
            rest = rest.dropFirst(5 + length)
        }
        return kinds
    }

    private func contains(_ bytes: [UInt8], _ part: [UInt8]) -> Bool {
        bytes.indices.contains { bytes[$0] == part[0] && bytes[$0...].starts(with: part) }
    }

    @Test func `Only prefaces and handshake are sent in plaintext`() throws {
        let room = Room()
        let puma = try room.join("Puma the first")
        let lynx = try room.join("Lynx the second")
        let listener = Listener()
        let relay = try Relay(to: lynx.port) { listener }
        defer { relay.end() }
        let context = Array("this is why you should say yes".utf8)
        #expect(try room.call(puma, port: relay.port, context: context) == .success(lynx.id))
        try room.wait("both", lynx) { $0.state(of: puma.id) == .connected }
        try room.exchangeMessages(puma, lynx)
        let incarnations = [puma, lynx].map { probe in
            probe.session.loop.call { probe.session.inspection.incarnation }
        }
        let secrets =
            ["Puma the first", "Lynx the second", "tests", "from one", "from other"].map { Array($0.utf8) }
            + [context] + [puma, lynx].map(\.id.bytes)
            + incarnations.map { number in (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) }
            }
        for stream in listener.streams {
            #expect(stream.prefix(8) == PrefaceTeller.preface[...])
            for secret in secrets { #expect(!contains(stream, secret), "\(secret) is in the clear") }
            let kinds = try #require(records(stream[8...]), "not a stream of records")
            // One record of the handshake is readable, ClientHello or ServerHello (22); all others are encrypted (23).
            #expect(kinds.first == 22 && kinds.dropFirst().allSatisfy { $0 == 23 } && kinds.count > 5)
        }
        #expect(contains(listener.streams[0], Array("nigh/1".utf8)), "the search finds what is there")
    }
}
