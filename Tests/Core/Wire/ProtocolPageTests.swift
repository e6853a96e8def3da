import Testing

@testable import NighCore

/// Tests that the code does what docs/reference/PROTOCOL.md says in tables, examples and vectors.
@Suite struct ProtocolPageTests {
    private let page: ProtocolPage

    init() throws { page = try ProtocolPage() }

    // MARK: The example

    /// Returns `bytes` with the random values of the page replaced by those of a session.
    private func fitted(_ bytes: [UInt8], _ replacements: [(from: [UInt8], to: [UInt8])]) -> [UInt8] {
        var result: [UInt8] = []
        var rest = bytes[...]
        while let first = rest.first {
            if let (from, to) = replacements.first(where: { rest.starts(with: $0.from) }) {
                result += to
                rest = rest.dropFirst(from.count)
            } else {
                result.append(first)
                rest = rest.dropFirst()
            }
        }
        return result
    }

    private func bytes(of number: UInt64) -> [UInt8] { withUnsafeBytes(of: number.bigEndian, Array.init) }

    /// A session that is the page's Puma or its Lynx. The other one's bytes come from the page.
    private func session(isDialling: Bool) throws -> ScriptedPeer {
        try ScriptedPeer {
            $0.service = "chat"
            $0.name = DisplayName(fitting: isDialling ? "Puma's den" : "Lynx")
        }
    }

    /// Plays the example with a session on one side. Each of the session's bytes must be the page's.
    private func play(isDialling: Bool) throws -> ScriptedPeer {
        let peer = try session(isDialling: isDialling)
        let own: UInt8 = isDialling ? 0xA1 : 0xA2
        let incarnation = peer.session.driver.machine.hello.incarnation
        var replacements: [(from: [UInt8], to: [UInt8])] = [
            ([UInt8](repeating: own, count: 32), peer.session.id.bytes),
            ([UInt8](repeating: own + 0x10, count: 8), bytes(of: incarnation)),
        ]
        if isDialling {
            peer.session.invite(at: ScriptedPeer.address, context: Array("hi there".utf8)) { _ in }
            try peer.run(.zero)
            try peer.openDialled()
        } else {
            try peer.open()
        }
        var heard: [UInt8] = []
        let steps = try page.example(in: "9. An example")
        #expect(steps.count == 13)
        for step in steps {
            let written = try #require(step.bytes.exact)
            guard step.isDialling == isDialling else {
                try peer.send(fitted(written, replacements))
                continue
            }
            switch written.count > 3 ? FrameType(rawValue: written[3]) : nil {
            case .message where isDialling:
                let other = try #require(peer.session.driver.machine.peers.keys.first)
                try peer.session.trySend(Array(written.dropFirst(4)), to: other)
            case .close:
                let other = try #require(peer.session.driver.machine.peers.keys.first)
                peer.session.disconnect(other)
            case .acknowledge: try peer.run(.milliseconds(99))
            default: break
            }
            try peer.run(.zero)
            heard += peer.takeOutput()
            if isDialling, written.count == 4 + 62 {
                let conversation = Array(heard.dropFirst(4).prefix(8))
                replacements.append(([UInt8](repeating: 0xC1, count: 8), conversation))
            }
            let expected = fitted(written, replacements)
            #expect(Array(heard.prefix(expected.count)) == expected, "\(heard)")
            heard.removeFirst(min(expected.count, heard.count))
        }
        #expect(heard.isEmpty, "more than the page has: \(heard)")
        return peer
    }

    @Test("The example is what a session that dials sends, byte by byte")
    func dialling() throws {
        let peer = try play(isDialling: true)
        let states = peer.events.compactMap {
            $0.stateChange?.peer.state
        }
        #expect(states.contains(.connected) && states.last == .unavailable)
    }

    @Test("The example is what a session that is dialled sends, byte by byte")
    func accepting() throws {
        let peer = try play(isDialling: false)
        #expect(peer.texts == ["hello"])
        let contexts = peer.events.compactMap {
            if case .invited(let invitation) = $0 { invitation.context } else { nil }
        }
        #expect(contexts == [Array("hi there".utf8)])
    }

    // MARK: Pairing

    /// The values that the section defines for its letters.
    private func values() throws -> [String: [UInt8]] {
        let line = try page.line("`E` =", in: "7.2")
        var values: [String: [UInt8]] = [:]
        for definition in line.split(separator: ",") {
            let sides = definition.split(separator: "=").map { $0.filter { $0 != "`" && $0 != ":" } }
            values[sides[0].filter { $0 != " " }] = try PatternOfBytes(sides[1]).exact
        }
        return values
    }

    /// The messages of both sides from the commitment to the digits, and the digits.
    private func exchange(_ values: [String: [UInt8]]) throws -> (said: [[UInt8]], code: PairingCode) {
        let (a, b) = (try peer(values["A"]), try peer(values["B"]))
        func side(_ role: PairingExchange.Role, _ own: PeerID, _ other: PeerID, _ nonce: String) throws
            -> PairingExchange
        {
            PairingExchange(
                role: role, own: own, other: other,
                keyingMaterial: SecretBytes(copying: try #require(values["E"])),
                nonce: SecretBytes(copying: try #require(values[nonce])))
        }
        var (one, two) = (try side(.asking, a, b, "Na"), try side(.asked, b, a, "Nb"))
        let commitment = one.begin()
        guard let commitment, try two.receive(commitment) == .awaitAnswer, let nonce = two.answer(),
            case .showCode(let code, send: let reveal?) = try one.receive(nonce),
            case .showCode(code, send: nil) = try two.receive(reveal), case .send(let yes) = one.confirm(),
            case .otherConfirmed = try two.receive(yes), case .bothConfirmed(let last?) = two.confirm()
        else { throw ProtocolPage.Missing(what: "the digits") }
        return ([commitment, nonce, reveal, yes, last].map(\.payload), code)
    }

    private func peer(_ bytes: [UInt8]?) throws -> PeerID {
        let bytes = try #require(bytes)
        return try #require(bytes.withUnsafeBytes { PeerID(bytes: $0) })
    }

    @Test("The example of a pairing has the commitment, hash, digits and messages that the page states")
    func pairing() throws {
        let values = try values()
        let said = try exchange(values)
        let block = try page.block(in: "7.2")
        func value(_ name: String) throws -> String {
            let line = try #require(block.first { $0.hasPrefix(name) })
            return String(try #require(line.split(separator: " ").last))
        }
        func hex(_ bytes: some Sequence<UInt8>) -> String {
            bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        }
        #expect(hex(said.said[0].dropFirst()) == (try value("commitment")))
        #expect(said.code.digits == (try value("digits")))
        var input = Array("nigh pairing 1 digits".utf8)
        for name in ["E", "A", "B", "Na", "Nb"] { input += try #require(values[name]) }
        let hash = input.withUnsafeBytes { SHA256.hash($0) }
        #expect(hex(hash) == (try value("hash")) && PairingCode(hash: hash) == said.code)
        #expect(try page.line("The digits are shown as", in: "7.2").contains("as \(said.code)."))
        let steps = try page.example(in: "7.2")
        #expect(steps.count == said.said.count)
        for (step, bytes) in zip(steps, said.said) { #expect(step.bytes.matches(bytes), "\(bytes)") }
        #expect(steps.map(\.isDialling) == [true, false, true, true, false])
    }

    @Test("The other vectors of the pairing are also right")
    func pairingVectors() throws {
        let rows = try page.table("| `E` | `Nb` | digits |", in: "7.2")
        #expect(rows.count == 2)
        for row in rows {
            var values = try values()
            values["E"] = try PatternOfBytes(row[0]).exact
            values["Nb"] = try PatternOfBytes(row[1]).exact
            #expect(try exchange(values).code.digits == row[2])
        }
    }

    @Test("The page's numbers about the modulo are right")
    func modulo() throws {
        // 2^64 is one more than the greatest number.
        let (quotient, rest) = UInt64.max.quotientAndRemainder(dividingBy: UInt64(PairingCode.upperBound))
        #expect(quotient == 18_446_744_073_709 && rest + 1 == 551_616)
        #expect(
            try page.line("The modulo favours", in: "7.1").contains(
                "2^64 = 18,446,744,073,709 × 1,000,000 + 551,616"))
    }

    // MARK: Tables

    @Test("Every frame type is on the page, under its number and name, and no other")
    func frameTypes() throws {
        var listed: [UInt8: String] = [:]
        for row in try page.table("| type | name | payload |", in: "2.3") {
            let numbers = row[0].split(separator: ",").compactMap {
                UInt8($0.filter { $0 != " " }.dropFirst(2), radix: 16)
            }
            let name = String(row[1].prefix { $0 != " " })
            for (index, number) in numbers.enumerated() {
                listed[number] = index == 0 ? name : "\(name)-bulk"
            }
        }
        #expect(
            listed
                == Dictionary(
                    uniqueKeysWithValues: FrameType.allCases.map {
                        ($0.rawValue, FrameType.name(of: $0.rawValue))
                    }))
    }

    @Test("Every close code is on the page, with what it ends, and no other")
    func closeCodes() throws {
        let rows = try page.table("| code | name | ends | what it says |", in: "6. Close")
        #expect(rows.count == LinkClose.Code.allCases.count)
        for row in rows {
            let number = try #require(UInt16(row[0]))
            #expect(LinkClose.Code(rawValue: number).map { "\($0)" } == row[1])
            #expect("\(LinkClose.Scope(of: number))" == row[2], "\(row[1])")
        }
    }

    @Test("Every kind of pairing message is on the page under its number")
    func pairingKinds() throws {
        let value = try #require(PairingValue([UInt8](repeating: 1, count: 32)))
        let kinds: [PairingMessage] = [
            .commitment(value), .nonce(value), .reveal(value), .confirmed, .refused(.declined),
        ]
        let rows = try page.table("| kind (1 byte) | name | then |", in: "7. Pairing")
        #expect(rows.map { $0[0] } == kinds.map { "\($0.payload[0])" })
        #expect(rows.map { $0[1] } == kinds.map(\.name))
    }
}
