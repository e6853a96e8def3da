import NighCore
import NighTestKit
import Testing

@testable import NighCodes

@Suite struct CodeExchangeTests {
    private static let receiver = PeerID(bytes: (0..<32).map { UInt8(32 + $0) })!
    private static let sender = PeerID(bytes: (0..<32).map { UInt8(64 + $0) })!
    private static let stranger = PeerID(bytes: (0..<32).map { UInt8(96 + $0) })!
    private static let material = (0..<32).map { UInt8($0) }
    private static let right = CodeKey(number: SecretBytes(copying: (0..<40).map { UInt8($0 + 1) }))
    private static let wrong = CodeKey(number: SecretBytes(copying: (0..<40).map { UInt8($0 + 2) }))

    /// The receiver's or the sender's side of an exchange with the other one.
    private func side(
        _ role: CodeExchange.Role, _ key: CodeKey = right, with other: PeerID? = nil,
        over link: [UInt8] = material, secret: UInt8? = nil
    ) -> CodeExchange {
        let (own, expected) =
            role == .asking ? (Self.receiver, Self.sender) : (Self.sender, Self.receiver)
        return CodeExchange(
            role: role, key: key, own: own, other: other ?? expected, material: SecretBytes(copying: link),
            secret: secret.map { SecretBytes(copying: Array(repeating: $0, count: 32)) })
    }

    /// Runs both sides to their ends, and returns these.
    private func play(_ one: CodeExchange, _ two: CodeExchange) throws -> (
        asking: CodeExchange.Step, asked: CodeExchange.Step
    ) {
        var (one, two) = (one, two)
        guard case .send(let share) = try two.receive(one.first) else { throw Failure() }
        guard case .send(let confirmation) = try one.receive(share) else { throw Failure() }
        let end = try two.receive(confirmation)
        switch end {
        case .proven(send: let answer?), .wrong(send: let answer?): return (try one.receive(answer), end)
        default: throw Failure()
        }
    }

    private struct Failure: Error {}

    @Test func `Two sides with one code prove it to each other`() throws {
        let ends = try play(side(.asking), side(.asked))
        #expect(ends.asking == .proven(send: nil))
        guard case .proven(send: .confirmation) = ends.asked else { return _ = Issue.record("\(ends.asked)") }
    }

    @Test func `A wrong code is seen by the side that shows the right one, and gets no proof`() throws {
        let ends = try play(side(.asking, Self.wrong), side(.asked))
        #expect(ends.asked == .wrong(send: .refused))
        #expect(ends.asking == .wrong(send: nil))
    }

    @Test func `A side that does not know the code cannot pass for the one that shows it`() throws {
        var (person, fake) = (side(.asking), side(.asked, Self.wrong))
        guard case .send(let share) = try fake.receive(person.first) else { throw Failure() }
        guard case .send = try person.receive(share) else { throw Failure() }
        #expect(try person.receive(.confirmation(Array(repeating: 0, count: 32))) == .wrong(send: nil))
    }

    @Test func `Somebody in the middle gets nothing, because the peers are in the proof`() throws {
        let ends = try play(side(.asking, with: Self.stranger), side(.asked, with: Self.stranger))
        #expect(ends.asked == .wrong(send: .refused))
        #expect(ends.asking == .wrong(send: nil))
    }

    @Test func `A thief of both keys in the middle gets nothing: the link is in the proof`() throws {
        let other = Self.material.map { $0 ^ 1 }
        var (one, two) = (side(.asking), side(.asked, over: other))
        #expect(try two.receive(one.first) == .restart(send: .again))
        #expect(try one.receive(.again) == .restart(send: nil))
        // One that also changes the mark of the link comes further, and not to the end.
        (one, two) = (side(.asking), side(.asked, over: other))
        guard case .share(let share, _) = one.first, case .share(_, let mark) = two.first,
            case .send(.share(let answer, _)) = try two.receive(.share(share, link: mark)),
            case .share(_, let ownMark) = one.first,
            case .send(let confirmation) = try one.receive(.share(answer, link: ownMark))
        else { throw Failure() }
        #expect(try two.receive(confirmation) == .wrong(send: .refused))
    }

    @Test func `A recorded exchange proves nothing when it is played again`() throws {
        var (one, two) = (side(.asking), side(.asked))
        let first = one.first
        guard case .send(let share) = try two.receive(first),
            case .send(let confirmation) = try one.receive(share)
        else { throw Failure() }
        #expect(try two.receive(confirmation) != .wrong(send: .refused))
        var again = side(.asked)
        guard case .send = try again.receive(first) else { throw Failure() }
        #expect(try again.receive(confirmation) == .wrong(send: .refused))
    }

    @Test func `The asked side gives no proof to a side that has not given one`() throws {
        var exchange = side(.asked)
        #expect(throws: CodeExchange.Violation.outOfOrder) {
            try exchange.receive(.confirmation(Array(repeating: 0, count: 32)))
        }
        exchange = side(.asked)
        guard case .share(_, let link) = side(.asking).first else { throw Failure() }
        let impossible = CodeMessage.share(Array(repeating: 4, count: 65), link: link)
        #expect(throws: CodeExchange.Violation.impossibleShare) { try exchange.receive(impossible) }
    }

    @Test func `Messages are read from pieces of any size, and unknown ones refused`() throws {
        let all: [CodeMessage] = [
            side(.asking).first, .confirmation(Array(0..<32)), .again, .refused,
        ]
        let stream = all.flatMap(\.bytes)
        for size in [1, 2, 7, stream.count] {
            var (unread, read): ([UInt8], [CodeMessage]) = ([], [])
            for start in stride(from: 0, to: stream.count, by: size) {
                unread += stream[start..<min(start + size, stream.count)]
                while let message = try CodeMessage.take(from: &unread) { read.append(message) }
            }
            #expect(read == all)
            #expect(unread.isEmpty)
        }
        var unknown: [UInt8] = [5]
        #expect(throws: CodeMessage.Unknown(kind: 5)) { try CodeMessage.take(from: &unknown) }
    }

    @Test func `The page of the protocol has this exchange, byte for byte`() throws {
        var (one, two) = (side(.asking, secret: 1), side(.asked, secret: 2))
        guard case .share(let shareOfA, let mark) = one.first,
            case .send(.share(let shareOfB, mark)) = try two.receive(one.first),
            case .send(.confirmation(let proofOfA)) = try one.receive(.share(shareOfB, link: mark)),
            case .proven(send: .confirmation(let proofOfB)?) = try two.receive(.confirmation(proofOfA))
        else { throw Failure() }
        let text = RepositoryFile.text(of: "docs/reference/PROTOCOL.md").filter { !$0.isWhitespace }
        for part in [mark, shareOfA, shareOfB, proofOfA, proofOfB] {
            let digits = part.map { byte in
                byte < 16 ? "0\(String(byte, radix: 16))" : String(byte, radix: 16)
            }.joined()
            #expect(text.contains(digits), "\(digits)")
        }
    }
}
