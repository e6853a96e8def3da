import NighCore
import Testing

@testable import NighMDNS

struct DNSMessageTests {
    static let name = DomainName(literal: "Puma._greet._tcp.local")
    static let question = Question(name: name, type: .service)

    /// An answer that repeats the question, with an SRV record whose owner and host are compressed, and a TXT record.
    static func answer(to number: UInt16) -> [UInt8] {
        var bytes = DNSMessage.query([question], number: number)
        bytes[2] = 0x84
        bytes[7] = 2
        let host: [UInt8] = [1, 104, 0xC0, 29]  // "h", then a pointer to "local" in the question
        bytes +=
            [0xC0, 12, 0, 33, 0x80, 1, 0, 0, 0, 10, 0, UInt8(6 + host.count), 0, 0, 0, 0, 0x0F, 0xA0] + host
        bytes += [0xC0, 12, 0, 16, 0x80, 1, 0, 0, 0, 10, 0, 4, 3, 97, 61, 49]
        return bytes
    }

    @Test func `Answers are read`() throws {
        let answers = DNSMessage.answers(in: Self.answer(to: 7), to: 7)
        try #require(answers.count == 2)
        #expect(answers[0].question == Self.question)
        #expect(
            ServiceRecord(data: answers[0].data)
                == ServiceRecord(port: 4_000, host: DomainName(literal: "h.local")))
        #expect(answers[1].question.type == .text)
        #expect(
            TextRecord(data: answers[1].data)?.entries == [TextEntry(key: "a", value: "1")].compactMap(\.self)
        )
    }

    @Test func `Answers to other queries are ignored`() {
        #expect(DNSMessage.answers(in: Self.answer(to: 7), to: 8) == [])
        #expect(
            DNSMessage.answers(in: DNSMessage.query([Self.question], number: 7), to: 7) == [], "a question")
        var refusal = Self.answer(to: 7)
        refusal[3] = 3
        #expect(DNSMessage.answers(in: refusal, to: 7) == [])
        var farewell = Self.answer(to: 7)
        let life = farewell.count - 16 - 22 + 9
        #expect(farewell[life] == 10)
        farewell[life] = 0
        #expect(DNSMessage.answers(in: farewell, to: 7).map(\.question.type) == [.text])
    }

    @Test func `Circular names are rejected`() {
        var bytes = Self.answer(to: 7)
        let pointer = bytes.count - 16 - 22
        bytes[pointer + 1] = UInt8(pointer)
        #expect(DNSMessage.answers(in: bytes, to: 7) == [])
    }

    /// Any input is read to its end, and no impossible value in it is accepted.
    @Test func `Corrupted messages are read to their end`() {
        var random = SeededGenerator(seed: 3)
        let whole = Self.answer(to: 7)
        for count in whole.indices {
            #expect(DNSMessage.answers(in: Array(whole[..<count]), to: 7).count < 2)
        }
        var found = 0
        for _ in 0..<20_000 {
            var bytes = whole
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                bytes[Int.random(in: 2..<bytes.count, using: &random)] = .random(
                    in: 0 ... .max, using: &random)
            }
            for answer in DNSMessage.answers(in: bytes, to: 7) where answer.question.type == .service {
                if let record = ServiceRecord(data: answer.data) {
                    found += 1
                    #expect(ServiceRecord(data: record.data) == record)
                }
            }
        }
        #expect(found > 1_000)
    }
}
