/// Encodes and decodes the DNS messages that this module sends and receives without Avahi.
package enum DNSMessage {
    /// A record in an answer. No name in its data is compressed.
    package struct Answer: Hashable, Sendable {
        package let question: Question
        package let data: [UInt8]

        package init(question: Question, data: [UInt8]) {
            self.question = question
            self.data = data
        }
    }

    /// The most questions and the most records of one message that are read.
    package static let maximumRecords = 64

    /// Encodes a message that asks `questions`.
    package static func query(_ questions: [Question], number: UInt16) -> [UInt8] {
        var bytes = bigEndian([number, 0, UInt16(questions.count), 0, 0, 0])
        for question in questions {
            bytes += question.name.wire + bigEndian([question.type.rawValue, Reader.internet])
        }
        return bytes
    }

    /// Decodes the SRV and TXT records in `message`, if it answers the query with that number. Decoding stops at the
    /// first malformed part, and returns the records before it.
    package static func answers(in message: [UInt8], to number: UInt16) -> [Answer] {
        var reader = Reader(message)
        guard reader.number() == number, let flags = reader.number(), flags & 0xF80F == 0x8000,
            let questions = reader.number(), let answers = reader.number(), let authorities = reader.number(),
            let additions = reader.number()
        else { return [] }
        for _ in 0..<min(Int(questions), maximumRecords) {
            guard reader.name() != nil, reader.skip(4) else { return [] }
        }
        var found: [Answer] = []
        for _ in 0..<min(Int(answers) + Int(authorities) + Int(additions), maximumRecords) {
            guard reader.record(into: &found) else { break }
        }
        return found
    }

    private static func bigEndian(_ numbers: [UInt16]) -> [UInt8] {
        numbers.flatMap { [UInt8($0 >> 8), UInt8(truncatingIfNeeded: $0)] }
    }

    private struct Reader {
        static let internet: UInt16 = 1

        private let bytes: [UInt8]
        private var position = 0

        init(_ bytes: [UInt8]) { self.bytes = bytes }

        mutating func number() -> UInt16? {
            guard position + 2 <= bytes.count else { return nil }
            defer { position += 2 }
            return UInt16(bytes[position]) << 8 | UInt16(bytes[position + 1])
        }

        mutating func skip(_ count: Int) -> Bool {
            guard position + count <= bytes.count else { return false }
            position += count
            return true
        }

        /// Reads a name and expands its compression. Each pointer must lead further back, so the loop ends.
        mutating func name() -> DomainName? {
            var labels: [[UInt8]] = []
            var cursor = position
            var earliest = position
            var hasJumped = false
            while labels.count <= DomainName.maximumByteCount / 2, cursor < bytes.count {
                let length = Int(bytes[cursor])
                if length == 0 {
                    if !hasJumped { position = cursor + 1 }
                    return DomainName(labels: labels)
                } else if length & 0xC0 == 0xC0 {
                    guard cursor + 1 < bytes.count else { return nil }
                    let target = (length & 0x3F) << 8 | Int(bytes[cursor + 1])
                    guard target < earliest else { return nil }
                    if !hasJumped { position = cursor + 2 }
                    hasJumped = true
                    earliest = target
                    cursor = target
                } else {
                    guard length <= DomainName.maximumLabel, cursor + 1 + length <= bytes.count else {
                        return nil
                    }
                    labels.append(Array(bytes[cursor + 1...cursor + length]))
                    cursor += 1 + length
                }
            }
            return nil
        }

        /// Reads a record; returns false if no further record can be read.
        mutating func record(into found: inout [Answer]) -> Bool {
            guard let owner = name(), let type = number(), let kind = number(), let high = number(),
                let low = number(), let length = number(), position + Int(length) <= bytes.count
            else { return false }
            let end = position + Int(length)
            defer { position = end }
            // The topmost bit of the class says that this is the only record of its name and type. A time to live of 0
            // means that the record is gone.
            guard kind & 0x7FFF == Self.internet, (high, low) != (0, 0) else { return true }
            switch RecordType(rawValue: type) {
            case .text:
                let question = Question(name: owner, type: .text)
                found.append(Answer(question: question, data: Array(bytes[position..<end])))
            case .service:
                let head = bytes[position..<min(position + 6, end)]
                guard head.count == 6, skip(6), let host = name(), position == end else { return true }
                found.append(Answer(question: Question(name: owner, type: .service), data: head + host.wire))
            default:
                break
            }
            return true
        }
    }
}
