import Testing

@testable import NighCore

@Suite struct PairingExchangeTests {
    private typealias Step = PairingExchange.Step
    private typealias Violation = PairingExchange.Violation

    private static func bytes(from first: UInt8) -> [UInt8] { (0..<32).map { first + $0 } }

    private static func secret(_ bytes: [UInt8]) -> SecretBytes { SecretBytes(copying: bytes) }

    /// The peers, the connection and the nonces of the example in docs/reference/PROTOCOL.md.
    private static let asking = PeerID(bytes: bytes(from: 32))!
    private static let asked = PeerID(bytes: bytes(from: 64))!
    private static let exporter = bytes(from: 0)
    private static let askingNonce = bytes(from: 96)
    private static let askedNonce = bytes(from: 128)

    private static func askingSide(
        exporter: [UInt8] = exporter, other: PeerID = asked, nonce: [UInt8]? = askingNonce
    ) -> PairingExchange {
        PairingExchange(
            role: .asking, own: asking, other: other, keyingMaterial: secret(exporter),
            nonce: nonce.map(secret))
    }

    private static func askedSide(
        exporter: [UInt8] = exporter, other: PeerID = asking, nonce: [UInt8]? = askedNonce
    ) -> PairingExchange {
        PairingExchange(
            role: .asked, own: asked, other: other, keyingMaterial: secret(exporter), nonce: nonce.map(secret)
        )
    }

    private static func value(_ bytes: [UInt8]) -> PairingValue { PairingValue(bytes)! }

    /// The first message, which the asking side must send.
    private func begin(_ exchange: inout PairingExchange) throws -> PairingMessage {
        let message = exchange.begin()
        return try #require(message)
    }

    /// Runs both sides until they show the digits; returns the code of each.
    private func compare(_ one: inout PairingExchange, _ two: inout PairingExchange) throws -> [PairingCode] {
        let commitment = try begin(&one)
        guard let nonce = try two.answer(to: commitment),
            case .showCode(let first, send: let reveal?) = try one.receive(nonce),
            case .showCode(let second, send: nil) = try two.receive(reveal)
        else {
            Issue.record("the exchange does not get to the digits")
            return []
        }
        return [first, second]
    }

    // MARK: Agreement

    @Test func theExampleInTheProtocolPageIsReproduced() throws {
        var (one, two) = (Self.askingSide(), Self.askedSide())
        let digest = "8001fad474d1c4d967c40f2a7aeef989d3ad5494f75793bbfd7f07cd9daef4d4"
        let message = try begin(&one)
        #expect(message.payload == [1] + Self.hexadecimal(digest))
        let nonce = try two.answer(to: message)
        #expect(nonce == .nonce(Self.value(Self.askedNonce)))
        let shown = try one.receive(.nonce(Self.value(Self.askedNonce)))
        let reveal = PairingMessage.reveal(Self.value(Self.askingNonce))
        guard case .showCode(let code, send: reveal) = shown else {
            Issue.record("\(shown)")
            return
        }
        #expect(code.digits == "278030")
        #expect(try two.receive(reveal) == .showCode(code, send: nil))
    }

    private static func hexadecimal(_ text: String) -> [UInt8] {
        stride(from: 0, to: text.count, by: 2).map { offset in
            let start = text.index(text.startIndex, offsetBy: offset)
            return UInt8(text[start..<text.index(start, offsetBy: 2)], radix: 16)!
        }
    }

    @Test func leadingZeroesAreShown() throws {
        var one = Self.askingSide()
        var two = Self.askedSide(nonce: [UInt8](repeating: 0x80, count: 30) + [0, 5])
        #expect(try compare(&one, &two).map(\.description) == ["008 816", "008 816"])
    }

    @Test func bothSidesShowTheSameDigitsAndEachExchangeShowsNewOnes() throws {
        var codes: Set<PairingCode> = []
        for _ in 0..<50 {
            var (one, two) = (Self.askingSide(nonce: nil), Self.askedSide(nonce: nil))
            let both = try compare(&one, &two)
            #expect(both.count == 2 && both[0] == both[1])
            codes.formUnion(both)
        }
        #expect(codes.count > 45, "50 draws of a million are nearly always 50 different ones")
    }

    @Test func onlyAPeerThatBothConfirmedIsPaired() throws {
        for isAskingFirst in [true, false] {
            var (one, two) = (Self.askingSide(), Self.askedSide())
            _ = try compare(&one, &two)
            if !isAskingFirst { swap(&one, &two) }
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

    @Test func crossingConfirmationsPairBothPeers() throws {
        var (one, two) = (Self.askingSide(), Self.askedSide())
        _ = try compare(&one, &two)
        #expect(one.confirm() == .send(.confirmed))
        #expect(two.confirm() == .send(.confirmed))
        #expect(try one.receive(.confirmed) == .bothConfirmed(send: nil))
        #expect(try two.receive(.confirmed) == .bothConfirmed(send: nil))
    }

    @Test func digitsCannotBeConfirmedBeforeTheyAreShown() throws {
        var (one, two) = (Self.askingSide(), Self.askedSide())
        #expect(one.confirm() == .nothing)
        #expect(two.confirm() == .nothing)
        let commitment = try begin(&one)
        #expect(one.begin() == nil)
        #expect(two.begin() == nil)
        _ = try two.receive(commitment)
        #expect(one.confirm() == .nothing)
        #expect(two.confirm() == .nothing)
    }

    @Test func twoSidesThatAskAtOnceAgreeOnOneExchange() throws {
        var greater = PairingExchange(
            role: .asking, own: Self.asked, other: Self.asking, keyingMaterial: Self.secret(Self.exporter))
        var smaller = Self.askingSide(nonce: nil)
        let (first, second) = (try begin(&greater), try begin(&smaller))
        #expect(try greater.receive(second) == .nothing)
        guard let nonce = try smaller.answer(to: first),
            case .showCode(let code, send: let reveal?) = try greater.receive(nonce)
        else {
            Issue.record("neither gave way")
            return
        }
        #expect(try smaller.receive(reveal) == .showCode(code, send: nil))
        #expect(greater.role == .asking && smaller.role == .asked)
        // Only once, and not again.
        var insistent = PairingExchange(
            role: .asking, own: Self.asked, other: Self.asking, keyingMaterial: Self.secret(Self.exporter))
        _ = insistent.begin()
        _ = try insistent.receive(second)
        #expect(throws: Violation.self) { try insistent.receive(second) }
    }

    @Test func theNonceIsGivenOnceAndOnlyForACommitment() throws {
        var (one, two) = (Self.askingSide(), Self.askedSide())
        #expect(two.answer() == nil && one.answer() == nil)
        let commitment = try begin(&one)
        #expect(try two.receive(commitment) == .awaitAnswer)
        #expect(two.answer() == .nonce(Self.value(Self.askedNonce)))
        #expect(two.answer() == nil)
    }

    // MARK: An attacker in the middle

    @Test func everyBoundInputChangesTheDigits() throws {
        let eve = PeerID.numbered(9)
        var codes: Set<PairingCode> = []
        let exchanges = [
            (Self.askingSide(), Self.askedSide()),
            (
                Self.askingSide(exporter: [UInt8](repeating: 255, count: 32)),
                Self.askedSide(exporter: [UInt8](repeating: 255, count: 32))
            ),
            (Self.askingSide(nonce: Self.bytes(from: 1)), Self.askedSide()),
            (Self.askingSide(), Self.askedSide(nonce: Self.bytes(from: 1))),
            (
                Self.askingSide(other: eve),
                PairingExchange(
                    role: .asked, own: eve, other: Self.asking, keyingMaterial: Self.secret(Self.exporter),
                    nonce: Self.secret(Self.askedNonce))
            ),
            (
                PairingExchange(
                    role: .asking, own: Self.asked, other: Self.asking,
                    keyingMaterial: Self.secret(Self.exporter), nonce: Self.secret(Self.askingNonce)),
                PairingExchange(
                    role: .asked, own: Self.asking, other: Self.asked,
                    keyingMaterial: Self.secret(Self.exporter), nonce: Self.secret(Self.askedNonce))
            ),
        ]
        for (asking, asked) in exchanges {
            var (one, two) = (asking, asked)
            codes.formUnion(try compare(&one, &two))
        }
        #expect(codes.count == exchanges.count)
        #expect(codes.contains { $0.digits == "209706" }, "the other connection's, as the page has it")
    }

    /// A relay with a key of its own and a TLS connection on each side. It does everything that a relay can do without
    /// breaking a rule: one side asks it, and it asks the other.
    private struct Relay {
        static let id = PeerID.numbered(1_000_003)
        var one = PairingExchangeTests.askingSide(other: id, nonce: nil)
        var two = PairingExchangeTests.askedSide(
            exporter: PairingExchangeTests.bytes(from: 200), other: id, nonce: nil)
        var towardsOne = PairingExchange(
            role: .asked, own: id, other: PairingExchangeTests.asking,
            keyingMaterial: PairingExchangeTests.secret(PairingExchangeTests.exporter))
        var towardsTwo = PairingExchange(
            role: .asking, own: id, other: PairingExchangeTests.asked,
            keyingMaterial: PairingExchangeTests.secret(PairingExchangeTests.bytes(from: 200)))
    }

    @Test func aRelayMatchesTheDigitsOnlyByChance() throws {
        var same = 0
        for _ in 0..<500 {
            var relay = Relay()
            let first = try compare(&relay.one, &relay.towardsOne)
            let second = try compare(&relay.towardsTwo, &relay.two)
            if first.first == second.last { same += 1 }
        }
        // About five of ten thousand runs of this test have one such coincidence.
        #expect(same <= 1)
    }

    @Test func aRelayCannotForwardTheMessages() throws {
        var relay = Relay()
        let commitment = try begin(&relay.one)
        guard let nonce = try relay.two.answer(to: commitment),
            case .showCode(_, send: let reveal?) = try relay.one.receive(nonce)
        else {
            Issue.record("the relay did not get that far")
            return
        }
        // The commitment was made for the other connection.
        #expect(throws: Violation.brokenCommitment) { try relay.two.receive(reveal) }
    }

    @Test func aNonceThatBreaksItsCommitmentIsDetected() throws {
        var (one, two) = (Self.askingSide(), Self.askedSide())
        let commitment = try begin(&one)
        _ = try two.answer(to: commitment)
        for bit in [0, 100, 255] {
            var chosen = Self.askingNonce
            chosen[bit / 8] ^= 1 << (bit % 8)
            var copy = two
            #expect(throws: Violation.brokenCommitment) { try copy.receive(.reveal(Self.value(chosen))) }
        }
        #expect(
            Violation.brokenCommitment.asCause
                == .protocolViolation("the revealed pairing nonce is not the one that was committed to"))
        // The honest value is accepted.
        #expect(throws: Never.self) { try two.receive(.reveal(Self.value(Self.askingNonce))) }
    }

    // MARK: Order

    private static let anyValue = value(bytes(from: 7))
    private static let all: [PairingMessage] = [
        .commitment(anyValue), .nonce(anyValue), .reveal(anyValue), .confirmed, .refused(.declined),
    ]

    /// Every phase: how it is reached, and which messages it allows.
    private func phases() throws -> [(name: String, exchange: PairingExchange, allowed: [String])] {
        var (one, two) = (Self.askingSide(), Self.askedSide())
        var phases: [(name: String, exchange: PairingExchange, allowed: [String])] = [
            ("asking, not begun", one, ["refused"]), ("asked, waiting", two, ["refused", "commitment"]),
        ]
        let commitment = try begin(&one)
        _ = try two.receive(commitment)
        phases.append(("asking, committed", one, ["refused", "nonce", "commitment"]))
        phases.append(("asked, nonce kept", two, ["refused"]))
        _ = two.answer()
        // A reveal is allowed too, but only of the committed value.
        phases.append(("asked, nonce sent", two, ["refused"]))
        _ = try one.receive(.nonce(Self.value(Self.askedNonce)))
        _ = try two.receive(.reveal(Self.value(Self.askingNonce)))
        for (name, exchange) in [("asking", one), ("asked", two)] {
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

    @Test func messagesOutOfOrderAreViolations() throws {
        for (name, exchange, allowed) in try phases() {
            for message in Self.all {
                var copy = exchange
                if allowed.contains(message.name) {
                    #expect(throws: Never.self, "\(name): \(message.name)") { try copy.receive(message) }
                } else {
                    #expect(throws: Violation.self, "\(name): \(message.name)") { try copy.receive(message) }
                }
            }
        }
    }

    @Test func aViolationNamesTheMessageAndThePhase() {
        var two = Self.askedSide()
        let violation = #expect(throws: Violation.self) { try two.receive(.confirmed) }
        #expect(
            violation?.asCause
                == .protocolViolation("the pairing message \"confirmed\" while a commitment is awaited"))
    }

    // MARK: Refusal

    @Test(arguments: PairingRefusal.allCases)
    func eitherSideMayRefuseAtAnyTime(reason: PairingRefusal) throws {
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

extension PairingExchange {
    /// Takes the other side's commitment and answers it at once; nil if that does not answer it.
    fileprivate mutating func answer(to commitment: PairingMessage) throws -> PairingMessage? {
        try receive(commitment) == .awaitAnswer ? answer() : nil
    }
}
