import NighTestKit
import Testing

@testable import NighCore

@Suite struct PairingExchangeTests {
    private typealias Violation = PairingExchange.Violation

    private static func bytes(from first: UInt8) -> [UInt8] { (0..<32).map { first &+ $0 } }

    // The peers, the connection and the nonces of the example in docs/reference/PROTOCOL.md.
    private static let asking = PeerID(bytes: bytes(from: 32))!
    private static let asked = PeerID(bytes: bytes(from: 64))!
    private static let exporter = bytes(from: 0)
    private static let askingNonce = bytes(from: 96)
    private static let askedNonce = bytes(from: 128)

    /// One side of an exchange: that of the page, unless something of it is said to be different.
    private static func side(
        _ role: PairingExchange.Role, own: PeerID? = nil, other: PeerID? = nil,
        exporter: [UInt8] = exporter, nonce: [UInt8]? = nil, isRandom: Bool = false
    ) -> PairingExchange {
        let isAsking = role == .asking
        let nonce = nonce ?? (isAsking ? askingNonce : askedNonce)
        return PairingExchange(
            role: role, own: own ?? (isAsking ? asking : asked), other: other ?? (isAsking ? asked : asking),
            keyingMaterial: SecretBytes(copying: exporter),
            nonce: isRandom ? nil : SecretBytes(copying: nonce))
    }

    /// Both sides of an exchange, and what they say to each other.
    private struct Two {
        var one = side(.asking)
        var two = side(.asked)

        /// The first message, which the asking side must send.
        mutating func begin() throws -> PairingMessage {
            let message = one.begin()
            return try #require(message)
        }

        /// Lets the asked side answer the commitment.
        mutating func answer() throws -> (PairingMessage, PairingMessage) {
            let commitment = try begin()
            let step = try two.receive(commitment)
            try #require(step == .awaitAnswer)
            let nonce = two.answer()
            return (commitment, try #require(nonce))
        }

        /// Runs both sides until they show the digits; returns all messages, and the code of each.
        @discardableResult
        mutating func compare() throws -> (said: [PairingMessage], codes: [PairingCode]) {
            let (commitment, nonce) = try answer()
            guard case .showCode(let first, send: let reveal?) = try one.receive(nonce),
                case .showCode(let second, send: nil) = try two.receive(reveal)
            else { throw ProtocolPage.Missing(what: "the digits") }
            return ([commitment, nonce, reveal], [first, second])
        }
    }

    private static func value(_ bytes: [UInt8]) -> PairingValue { PairingValue(bytes)! }

    // MARK: Agreement

    @Test func `The example of the protocol's page is played, and its other digits are right`() throws {
        let page = ProtocolPage()
        var two = Two()
        let (said, codes) = try two.compare()
        #expect(two.one.confirm() == .send(.confirmed))
        #expect(try two.two.receive(.confirmed) == .otherConfirmed)
        #expect(two.two.confirm() == .bothConfirmed(send: .confirmed))
        let steps = try page.example(in: "7.2")
        #expect(steps.map(\.isDialling) == [true, false, true, true, false])
        for (step, message) in zip(steps, said + [.confirmed, .confirmed]) {
            #expect(step.bytes.matches(message.payload), "\(message)")
        }
        let hashed = [
            Array("nigh pairing 1 digits".utf8), Self.exporter, Self.asking.bytes, Self.asked.bytes,
            Self.askingNonce, Self.askedNonce,
        ].flatMap(\.self)
        let hash = hashed.withUnsafeBytes { SHA256.hash($0) }
        let block = try page.block(in: "7.2").prefix(3).map { String($0.split(separator: " ")[1]) }
        #expect([UInt8](hexadecimal: block[0]) == Array(said[0].payload.dropFirst()))
        #expect([UInt8](hexadecimal: block[1]) == hash)
        #expect(codes == [PairingCode(hash: hash), PairingCode(hash: hash)] && codes[0].digits == block[2])
        let rows = try page.table("| `E` | `Nb` | digits |", in: "7.2")
        #expect(rows.count == 2)
        for row in rows {
            let exporter = try #require(try PatternOfBytes(row[0]).exact)
            var other = Two(
                one: Self.side(.asking, exporter: exporter),
                two: Self.side(.asked, exporter: exporter, nonce: try PatternOfBytes(row[1]).exact))
            #expect(try other.compare().codes.map(\.digits) == [row[2], row[2]])
        }
    }

    @Test func `Both sides show the same digits and each exchange shows new ones`() throws {
        var codes: Set<PairingCode> = []
        for _ in 0..<50 {
            var two = Two(one: Self.side(.asking, isRandom: true), two: Self.side(.asked, isRandom: true))
            let both = try two.compare().codes
            #expect(both[0] == both[1])
            codes.formUnion(both)
        }
        #expect(codes.count > 45, "50 draws of a million are nearly always 50 different ones")
    }

    @Test func `Only a peer that both confirmed is paired`() throws {
        for isAskingFirst in [true, false] {
            var both = Two()
            try both.compare()
            var (one, two) = isAskingFirst ? (both.one, both.two) : (both.two, both.one)
            #expect(one.confirm() == .send(.confirmed))
            #expect(one.confirm() == .nothing)
            #expect(!one.isOver)
            #expect(try two.receive(.confirmed) == .otherConfirmed)
            #expect(!two.isOver)
            #expect(two.confirm() == .bothConfirmed(send: .confirmed))
            #expect(two.isOver)
            #expect(try one.receive(.confirmed) == .bothConfirmed(send: nil))
            #expect(one.isOver)
            #expect(one.confirm() == .nothing)
            #expect(one.refuse(.declined) == nil, "what both have confirmed is not taken back here")
        }
    }

    @Test func `Crossing confirmations pair both peers`() throws {
        var two = Two()
        try two.compare()
        #expect(two.one.confirm() == .send(.confirmed))
        #expect(two.two.confirm() == .send(.confirmed))
        #expect(try two.one.receive(.confirmed) == .bothConfirmed(send: nil))
        #expect(try two.two.receive(.confirmed) == .bothConfirmed(send: nil))
    }

    @Test func `Each step comes once and in its turn`() throws {
        var two = Two()
        #expect(two.one.confirm() == .nothing && two.two.confirm() == .nothing)
        #expect(two.one.answer() == nil && two.two.answer() == nil)
        let commitment = try two.begin()
        #expect(two.one.begin() == nil && two.two.begin() == nil)
        #expect(try two.two.receive(commitment) == .awaitAnswer)
        #expect(two.one.confirm() == .nothing && two.two.confirm() == .nothing)
        #expect(two.two.answer() == .nonce(Self.value(Self.askedNonce)))
        #expect(two.two.answer() == nil)
    }

    @Test func `Two sides that ask at once agree on one exchange`() throws {
        var greater = Self.side(.asking, own: Self.asked, other: Self.asking)
        var insistent = greater
        var smaller = Self.side(.asking)
        let (first, second) = (greater.begin(), smaller.begin())
        let (commitment, crossing) = (try #require(first), try #require(second))
        #expect(try greater.receive(crossing) == .nothing)
        #expect(try smaller.receive(commitment) == .awaitAnswer)
        let nonce = smaller.answer()
        guard case .showCode(let code, send: let reveal?) = try greater.receive(try #require(nonce)) else {
            Issue.record("neither gave way")
            return
        }
        #expect(try smaller.receive(reveal) == .showCode(code, send: nil))
        #expect(greater.role == .asking && smaller.role == .asked)
        // Only once, and not again.
        _ = insistent.begin()
        _ = try insistent.receive(crossing)
        #expect(throws: Violation.self) { try insistent.receive(crossing) }
    }

    // MARK: An attacker in the middle

    @Test func `Every bound input changes the digits`() throws {
        let eve = PeerID.numbered(9)
        let other = Self.bytes(from: 1)
        var exchanges = [
            Two(), Two(one: Self.side(.asking, nonce: other)), Two(two: Self.side(.asked, nonce: other)),
            Two(one: Self.side(.asking, exporter: other), two: Self.side(.asked, exporter: other)),
            Two(one: Self.side(.asking, other: eve), two: Self.side(.asked, own: eve)),
            Two(
                one: Self.side(.asking, own: Self.asked, other: Self.asking),
                two: Self.side(.asked, own: Self.asking, other: Self.asked)),
        ]
        let codes = try exchanges.indices.flatMap { try exchanges[$0].compare().codes }
        #expect(Set(codes).count == exchanges.count)
    }

    /// A relay with a key of its own and a TLS connection on each side does everything that it can do without breaking
    /// a rule: one side asks it, and it asks the other.
    @Test func `A relay matches the digits only by chance`() throws {
        let (relay, connection) = (PeerID.numbered(1_000_003), Self.bytes(from: 200))
        var same = 0
        for _ in 0..<500 {
            var first = Two(
                one: Self.side(.asking, other: relay, isRandom: true),
                two: Self.side(.asked, own: relay, isRandom: true))
            var second = Two(
                one: Self.side(.asking, own: relay, exporter: connection, isRandom: true),
                two: Self.side(.asked, other: relay, exporter: connection, isRandom: true))
            if try first.compare().codes[0] == second.compare().codes[1] { same += 1 }
        }
        // About five of ten thousand runs of this test have one such coincidence.
        #expect(same <= 1)
    }

    @Test func `A relay cannot forward the messages, because the commitment is for one connection`() throws {
        let relay = PeerID.numbered(1_000_003)
        var two = Two(
            one: Self.side(.asking, other: relay),
            two: Self.side(.asked, other: relay, exporter: Self.bytes(from: 200)))
        let nonce = try two.answer().1
        guard case .showCode(_, send: let reveal?) = try two.one.receive(nonce) else {
            Issue.record("the relay did not get that far")
            return
        }
        #expect(throws: Violation.brokenCommitment) { try two.two.receive(reveal) }
    }

    @Test func `A nonce that breaks its commitment is detected`() throws {
        var two = Two()
        _ = try two.answer()
        for bit in [0, 100, 255] {
            var chosen = Self.askingNonce
            chosen[bit / 8] ^= 1 << (bit % 8)
            var copy = two.two
            #expect(throws: Violation.brokenCommitment) { try copy.receive(.reveal(Self.value(chosen))) }
        }
        // The honest value is accepted.
        #expect(throws: Never.self) { try two.two.receive(.reveal(Self.value(Self.askingNonce))) }
    }

    // MARK: Order

    private static let anyValue = value(bytes(from: 7))
    private static let all: [PairingMessage] = [
        .commitment(anyValue), .nonce(anyValue), .reveal(anyValue), .confirmed, .refused(.declined),
    ]

    /// Every phase: how it is reached, and which messages it allows.
    private func phases() throws -> [(name: String, exchange: PairingExchange, allowed: [String])] {
        var two = Two()
        var phases: [(name: String, exchange: PairingExchange, allowed: [String])] = [
            ("asking, not begun", two.one, ["refused"]),
            ("asked, waiting", two.two, ["refused", "commitment"]),
        ]
        let commitment = try two.begin()
        _ = try two.two.receive(commitment)
        phases.append(("asking, committed", two.one, ["refused", "nonce", "commitment"]))
        phases.append(("asked, nonce kept", two.two, ["refused"]))
        _ = two.two.answer()
        // A reveal is allowed too, but only of the committed value.
        phases.append(("asked, nonce sent", two.two, ["refused"]))
        _ = try two.one.receive(.nonce(Self.value(Self.askedNonce)))
        _ = try two.two.receive(.reveal(Self.value(Self.askingNonce)))
        for (name, exchange) in [("asking", two.one), ("asked", two.two)] {
            phases.append(("\(name), comparing", exchange, ["refused", "confirmed"]))
            var confirmed = exchange
            _ = confirmed.confirm()
            phases.append(("\(name), confirmed", confirmed, ["refused", "confirmed"]))
            var otherConfirmed = exchange
            _ = try otherConfirmed.receive(.confirmed)
            phases.append(("\(name), the other confirmed", otherConfirmed, ["refused"]))
            _ = try confirmed.receive(.confirmed)
            phases.append(("\(name), paired", confirmed, []))
            var refused = exchange
            _ = try refused.receive(.refused(.busy))
            phases.append(("\(name), refused there", refused, []))
            var refusing = exchange
            _ = refusing.refuse(.timedOut)
            phases.append(("\(name), refused here", refusing, Self.all.map(\.name)))
        }
        return phases
    }

    @Test func `Messages out of order are violations`() throws {
        for (name, exchange, allowed) in try phases() {
            for message in Self.all {
                var copy = exchange
                var violation: Violation?
                do throws(Violation) { _ = try copy.receive(message) } catch { violation = error }
                #expect((violation == nil) == allowed.contains(message.name), "\(name): \(message.name)")
            }
        }
    }

    @Test(arguments: PairingRefusal.allCases)
    func `Either side may refuse at any time`(reason: PairingRefusal) throws {
        for (name, exchange, _) in try phases() where !exchange.isOver {
            var (here, there) = (exchange, exchange)
            #expect(here.refuse(reason) == .refused(reason), "\(name)")
            #expect(here.isOver)
            #expect(here.refuse(reason) == nil)
            #expect(here.confirm() == .nothing)
            // A message that the other side had already sent no longer has a meaning.
            #expect(try here.receive(.confirmed) == .nothing)
            #expect(try there.receive(.refused(reason)) == .refused(reason), "\(name)")
            #expect(there.isOver)
            #expect(there.confirm() == .nothing)
            #expect(there.refuse(.declined) == nil)
        }
    }
}
