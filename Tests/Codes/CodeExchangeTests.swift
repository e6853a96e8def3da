import Glibc
import NighCore
import Testing

@testable import NighCodes

@Suite struct CodeExchangeTests {
    private static let receiver = PeerID(bytes: (0..<32).map { UInt8(32 + $0) })!
    private static let sender = PeerID(bytes: (0..<32).map { UInt8(64 + $0) })!
    private static let stranger = PeerID(bytes: (0..<32).map { UInt8(96 + $0) })!
    private static let material = (0..<32).map { UInt8($0) }
    private static let right = CodeKey(number: SecretBytes(copying: (0..<40).map { UInt8($0 + 1) }))
    private static let wrong = CodeKey(number: SecretBytes(copying: (0..<40).map { UInt8($0 + 2) }))

    private func asking(
        _ key: CodeKey = right, as own: PeerID = receiver, to other: PeerID = sender,
        over link: [UInt8] = material
    ) -> CodeExchange {
        CodeExchange(role: .asking, key: key, own: own, other: other, material: SecretBytes(copying: link))
    }

    private func asked(
        _ key: CodeKey = right, as own: PeerID = sender, by other: PeerID = receiver,
        over link: [UInt8] = material
    ) -> CodeExchange {
        CodeExchange(role: .asked, key: key, own: own, other: other, material: SecretBytes(copying: link))
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

    @Test("Two sides with one code prove it to each other")
    func rightCode() throws {
        let ends = try play(asking(), asked())
        #expect(ends.asking == .proven(send: nil))
        guard case .proven(send: .confirmation) = ends.asked else {
            Issue.record("\(ends.asked)")
            return
        }
    }

    @Test("A wrong code is seen by the side that shows the right one, and gets no proof")
    func wrongCode() throws {
        let ends = try play(asking(Self.wrong), asked())
        #expect(ends.asked == .wrong(send: .refused))
        #expect(ends.asking == .wrong(send: nil))
    }

    @Test("A side that does not know the code cannot pass for the one that shows it")
    func falseSender() throws {
        var (person, fake) = (asking(), asked(Self.wrong))
        guard case .send(let share) = try fake.receive(person.first) else { throw Failure() }
        guard case .send = try person.receive(share) else { throw Failure() }
        #expect(try person.receive(.confirmation(Array(repeating: 0, count: 32))) == .wrong(send: nil))
    }

    @Test(
        "Somebody between the two who passes on everything gets nothing, because the peers are part of the proof"
    )
    func manInTheMiddle() throws {
        let ends = try play(asking(to: Self.stranger), asked(by: Self.stranger))
        #expect(ends.asked == .wrong(send: .refused))
        #expect(ends.asking == .wrong(send: nil))
    }

    @Test(
        "Somebody between the two who has stolen both keys gets nothing, because the link is part of the proof"
    )
    func twoLinks() throws {
        let other = Self.material.map { $0 ^ 1 }
        var (one, two) = (asking(), asked(over: other))
        #expect(try two.receive(one.first) == .restart(send: .again))
        #expect(try one.receive(.again) == .restart(send: nil))
        // One that also changes the mark of the link comes further, and not to the end.
        (one, two) = (asking(), asked(over: other))
        guard case .share(let share, _) = one.first, case .share(_, let mark) = two.first,
            case .send(.share(let answer, _)) = try two.receive(.share(share, link: mark)),
            case .share(_, let ownMark) = one.first,
            case .send(let confirmation) = try one.receive(.share(answer, link: ownMark))
        else { throw Failure() }
        #expect(try two.receive(confirmation) == .wrong(send: .refused))
    }

    @Test("A recorded exchange proves nothing when it is played again")
    func replay() throws {
        var (one, two) = (asking(), asked())
        let first = one.first
        guard case .send(let share) = try two.receive(first),
            case .send(let confirmation) = try one.receive(share)
        else { throw Failure() }
        #expect(try two.receive(confirmation) != .wrong(send: .refused))
        var again = asked()
        guard case .send = try again.receive(first) else { throw Failure() }
        #expect(try again.receive(confirmation) == .wrong(send: .refused))
    }

    @Test("The asked side gives no proof to a side that has not given one")
    func proofOrder() throws {
        var exchange = asked()
        #expect(throws: CodeExchange.Violation.outOfOrder) {
            try exchange.receive(.confirmation(Array(repeating: 0, count: 32)))
        }
        exchange = asked()
        guard case .share(_, let link) = asking().first else { throw Failure() }
        let impossible = CodeMessage.share(Array(repeating: 4, count: 65), link: link)
        #expect(throws: CodeExchange.Violation.impossibleShare) { try exchange.receive(impossible) }
    }

    @Test("Messages are read from pieces of any size, and unknown ones refused")
    func messages() throws {
        let all: [CodeMessage] = [
            asking().first, .confirmation(Array(0..<32)), .again, .refused,
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

    @Test("The page of the protocol has this exchange, byte for byte")
    func page() throws {
        func exchange(_ role: CodeExchange.Role, _ own: PeerID, _ other: PeerID, _ number: UInt8)
            -> CodeExchange
        {
            CodeExchange(
                role: role, key: Self.right, own: own, other: other,
                material: SecretBytes(copying: Self.material),
                secret: SecretBytes(copying: Array(repeating: number, count: 32)))
        }
        var one = exchange(.asking, Self.receiver, Self.sender, 1)
        var two = exchange(.asked, Self.sender, Self.receiver, 2)
        guard case .share(let shareOfA, let mark) = one.first,
            case .send(.share(let shareOfB, mark)) = try two.receive(one.first),
            case .send(.confirmation(let proofOfA)) = try one.receive(.share(shareOfB, link: mark)),
            case .proven(send: .confirmation(let proofOfB)?) = try two.receive(.confirmation(proofOfA))
        else { throw Failure() }
        let text = try Self.page().filter { !$0.isWhitespace }
        for part in [mark, shareOfA, shareOfB, proofOfA, proofOfB] {
            let digits = part.map { byte in
                byte < 16 ? "0\(String(byte, radix: 16))" : String(byte, radix: 16)
            }.joined()
            #expect(text.contains(digits), "\(digits)")
        }
    }

    private static func page() throws -> String {
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let file = try #require(fopen("/\(root)/docs/reference/PROTOCOL.md", "r"))
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 18)
        bytes.removeLast(bytes.count - fread(&bytes, 1, bytes.count, file))
        return String(decoding: bytes, as: UTF8.self)
    }
}
