import NighCore

/// One question to a device's service discovery: which records of a service it has. A value without I/O: it says what to send
/// and is handed what came.
package struct ServiceSearch {
    /// What an answer brought.
    package enum Step: Hashable {
        /// The answer goes on: send this.
        case ask([UInt8])
        /// All records of sessions there.
        case done([SessionRecord])
        /// It is no answer to what was asked, or more than anybody has to say.
        case failed
    }

    private enum Message {
        static let question: UInt8 = 6
        static let answer: UInt8 = 7
    }

    /// The most bytes that all answers together may bring.
    package static let answerLimit = 64 * 1024
    /// The most records that are looked at.
    package static let recordLimit = 64
    /// A device says where it goes on in so many bytes at most.
    private static let longestContinuation = 16

    private let service: ServiceName
    private var number: UInt16 = 0
    private var answers: [UInt8] = []

    package init(for service: ServiceName) { self.service = service }

    /// The first question.
    package mutating func begin() -> [UInt8] { question(goingOn: []) }

    private mutating func question(goingOn continuation: ArraySlice<UInt8>) -> [UInt8] {
        number &+= 1
        let uuid = BluetoothUUID(of: service).bytes
        var content: [UInt8] = [0x35, UInt8(uuid.count + 1), 0x1C] + uuid
        content += [0xFF, 0xFF]
        content += [0x35, UInt8(SessionRecord.wanted.count * 3)]
        for attribute in SessionRecord.wanted { content += [0x09] + Self.two(attribute) }
        content += [UInt8(continuation.count)] + continuation
        return [Message.question] + Self.two(number) + Self.two(UInt16(content.count)) + content
    }

    /// What the device has sent, one packet.
    package mutating func received(_ packet: [UInt8]) -> Step {
        var rest = packet[...]
        guard rest.popFirst() == Message.answer, Self.number(&rest) == number,
            Self.number(&rest) == UInt16(exactly: rest.count), let count = Self.number(&rest),
            rest.count > Int(count), answers.count + Int(count) <= Self.answerLimit
        else { return .failed }
        answers += rest.prefix(Int(count))
        rest = rest.dropFirst(Int(count))
        guard let length = rest.popFirst(), Int(length) == rest.count, length <= Self.longestContinuation
        else {
            return .failed
        }
        // A device that goes on without bringing anything would do so for ever.
        guard length > 0 else { return .done(records) }
        return count > 0 ? .ask(question(goingOn: rest)) : .failed
    }

    private var records: [SessionRecord] {
        var bytes = answers[...]
        let lists = DataElement(from: &bytes)?.sequence ?? []
        return lists.prefix(Self.recordLimit).compactMap { $0.sequence }.compactMap {
            SessionRecord($0, of: service)
        }
    }

    private static func two(_ number: UInt16) -> [UInt8] { [UInt8(number >> 8), UInt8(number & 0xFF)] }

    private static func number(_ bytes: inout ArraySlice<UInt8>) -> UInt16? {
        guard let high = bytes.popFirst(), let low = bytes.popFirst() else { return nil }
        return UInt16(high) << 8 | UInt16(low)
    }
}
