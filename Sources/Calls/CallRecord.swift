import NighCore

/// A record that one side of a stream for calls sends to the other. docs/reference/PROTOCOL.md describes the bytes.
package enum CallRecord: Equatable {
    /// The caller makes a call. `timeout` is how many milliseconds it waits for the answer; zero is forever.
    case request(number: UInt64, timeout: UInt32, name: String, content: ByteSlice)
    /// The caller waits for the answer no longer.
    case cancel(number: UInt64)
    /// The outcome of a call.
    case answer(number: UInt64, CallOutcome)
    /// How many bytes of requests the caller may send in all.
    case credit(UInt64)
    /// The caller gives a name the next number, counted from 0, for its later calls.
    case name(String)
    /// A call whose name has the number `name`.
    case numbered(number: UInt64, timeout: UInt32, name: UInt16, content: ByteSlice)
}

/// How a call ended at the side that was asked.
package enum CallOutcome: Equatable, Sendable {
    case answer(ByteSlice)
    /// The program has answered with an error, which is encoded as answers are; empty if it cannot be encoded, or if
    /// the answer is longer than the peer takes.
    case error(ByteSlice)
    /// The program answers no calls of this name.
    case unknownName
    /// No actor was called, for this reason. The words say more, for a person.
    case refused(CallRefusal, String)

    /// The bytes of the content.
    var contentCount: Int {
        switch self {
        case .answer(let content), .error(let content): content.count
        case .unknownName, .refused: 0
        }
    }
}

/// Why an actor was not called.
package enum CallRefusal: UInt8, CaseIterable, Sendable {
    /// There is no such actor, or none that peers may call.
    case noActor = 1
    /// The program does not let this peer call the actor.
    case notAllowed = 2
    /// The actor has no such method that peers may call.
    case noMethod = 3
    /// The arguments are no values of the types that the method takes.
    case unreadable = 4
}

extension CallRecord {
    /// The most bytes of a name.
    package static let longestName = 255
    /// The most bytes in front of the content of a request or an answer.
    package static let longestHeader = 13 + 1 + longestName
    /// The bytes that the caller may send before the other side has granted any.
    package static let firstCredit: UInt64 = 256 << 10
    /// The number of names that have numbers in a stream, and the most bytes of such a name.
    package static let mostNames = 256
    package static let longestNumberedName = 1_024

    /// How much of the credit a request uses up that has this many bytes.
    package static func cost(of count: Int) -> UInt64 { UInt64(count) + 64 }

    fileprivate enum Kind: UInt8 {
        case request = 1
        case cancel = 2
        case answer = 3
        case error = 4
        case unknownName = 5
        case credit = 6
        case name = 7
        case numbered = 8
        case refused = 9
    }

    /// The record as it is sent, with its length in front.
    package var frame: ByteSlice {
        StreamMessageParser.frame(then: content) { fields in
            switch self {
            case .request(let number, let timeout, let name, _):
                fields.write(Kind.request.rawValue)
                fields.write(number)
                fields.write(timeout)
                fields.write(short: name)
            case .numbered(let number, let timeout, let name, _):
                fields.write(Kind.numbered.rawValue)
                fields.write(number)
                fields.write(timeout)
                fields.write(name)
            case .name(let name):
                fields.write(Kind.name.rawValue)
                fields.write(long: name, atMost: Self.longestNumberedName)
            case .cancel(let number):
                fields.write(Kind.cancel.rawValue)
                fields.write(number)
            case .answer(let number, let outcome):
                fields.write(outcome.kind.rawValue)
                fields.write(number)
                if case .refused(let reason, let words) = outcome {
                    fields.write(reason.rawValue)
                    fields.write(short: words)
                }
            case .credit(let bytes):
                fields.write(Kind.credit.rawValue)
                fields.write(bytes)
            }
        }
    }

    /// The bytes behind all fields.
    private var content: ByteSlice? {
        switch self {
        case .request(_, _, _, let content), .numbered(_, _, _, let content),
            .answer(_, .answer(let content)), .answer(_, .error(let content)):
            content
        default: nil
        }
    }

    /// Reads a record without its length. Returns nil if it is of a kind that a later version has.
    package init?(reading message: ByteSlice) throws(WireError) {
        let read = try message.withUnsafeBytes { bytes throws(WireError) -> CallRecord? in
            var fields = FieldReader(bytes)
            guard let kind = Kind(rawValue: try fields.number(UInt8.self, "the kind of a call's record"))
            else { return nil }
            // A name has no number in front.
            let number = kind == .name ? 0 : try fields.number(UInt64.self, "the number of a call")
            let record: CallRecord
            switch kind {
            case .request:
                let timeout = try fields.number(UInt32.self, "the timeout of a call")
                let name = try fields.shortText("the name of a call")
                return .request(
                    number: number, timeout: timeout, name: name, content: fields.rest(of: message))
            case .numbered:
                let timeout = try fields.number(UInt32.self, "the timeout of a call")
                let name = try fields.number(UInt16.self, "the number of a call's name")
                return .numbered(
                    number: number, timeout: timeout, name: name, content: fields.rest(of: message))
            case .answer: return .answer(number: number, .answer(fields.rest(of: message)))
            case .error: return .answer(number: number, .error(fields.rest(of: message)))
            case .name:
                record = .name(
                    try fields.longText(atMost: Self.longestNumberedName, "the name of a call"))
            case .cancel: record = .cancel(number: number)
            case .unknownName: record = .answer(number: number, .unknownName)
            case .credit: record = .credit(number)
            case .refused:
                let code = try fields.number(UInt8.self, "the reason of a refused call")
                // A reason of a later version.
                let reason = CallRefusal(rawValue: code) ?? .notAllowed
                let words = try fields.displayText("the words of a refused call")
                record = .answer(number: number, .refused(reason, words))
            }
            try fields.finish("a call's record")
            return record
        }
        guard let read else { return nil }
        self = read
    }
}

extension CallOutcome {
    fileprivate var kind: CallRecord.Kind {
        switch self {
        case .answer: .answer
        case .error: .error
        case .unknownName: .unknownName
        case .refused: .refused
        }
    }
}

extension FieldReader {
    /// The bytes of a record behind the fields that were read.
    fileprivate func rest(of message: ByteSlice) -> ByteSlice {
        message[message.count - remaining..<message.count]
    }
}
