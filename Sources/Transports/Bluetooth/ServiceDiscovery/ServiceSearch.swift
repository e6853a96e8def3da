import NighCore

/// One query to a device's service discovery: which records of a service it has. A value without I/O: it returns the
/// packets to send, and takes the packets that arrive.
package struct ServiceSearch {
    /// The next step after an answer.
    package enum Step: Hashable {
        /// Send this packet; the answer continues.
        case send([UInt8])
        /// Stop: these are all records of sessions there.
        case done([SessionRecord])
        /// Stop: the packet does not answer the question, or the answers exceed a limit.
        case failed
    }

    private enum Message {
        static let question: UInt8 = 6
        static let answer: UInt8 = 7
    }

    /// The most bytes that all answers together may have.
    package static let answerLimit = 64 * 1024
    /// The most records that are read.
    package static let recordLimit = 64
    /// The most bytes of a device's continuation state.
    private static let longestContinuation = 16

    private let service: ServiceName
    private var number: UInt16 = 0
    private var answers: [UInt8] = []

    package init(for service: ServiceName) { self.service = service }

    /// Returns the first question.
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

    /// Handles one packet from the device.
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
        // A device that continues without sending anything would do so forever.
        guard length > 0 else { return .done(records) }
        return count > 0 ? .send(question(goingOn: rest)) : .failed
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
