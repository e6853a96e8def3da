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
}

/// How a call ended at the side that was asked.
package enum CallOutcome: Equatable, Sendable {
    case answer(ByteSlice)
    /// The program has answered with an error, which is encoded as answers are; empty if it cannot be encoded, or if
    /// the answer is longer than the peer takes.
    case error(ByteSlice)
    /// The program answers no calls of this name.
    case unknownName

    /// The bytes of the content.
    var contentCount: Int {
        switch self {
        case .answer(let content), .error(let content): content.count
        case .unknownName: 0
        }
    }
}

extension CallRecord {
    /// The most bytes of a name.
    package static let longestName = 255
    /// The most bytes in front of the content of a request or an answer.
    package static let longestHeader = 13 + 1 + longestName
    /// The bytes that the caller may send before the other side has granted any.
    package static let firstCredit: UInt64 = 256 << 10

    /// How much of the credit a request uses up that has this many bytes.
    package static func cost(of count: Int) -> UInt64 { UInt64(count) + 64 }

    private enum Kind: UInt8 {
        case request = 1
        case cancel = 2
        case answer = 3
        case error = 4
        case unknownName = 5
        case credit = 6
    }

    /// The record as it is sent, with its length in front.
    package var frame: ByteSlice {
        var fields = FieldWriter()
        let content: ByteSlice
        switch self {
        case .request(let number, let timeout, let name, let body):
            fields.write(Kind.request.rawValue)
            fields.write(number)
            fields.write(timeout)
            fields.write(short: name)
            content = body
        case .cancel(let number):
            fields.write(Kind.cancel.rawValue)
            fields.write(number)
            content = ByteSlice([])
        case .answer(let number, let outcome):
            let (kind, body): (Kind, ByteSlice) =
                switch outcome {
                case .answer(let bytes): (.answer, bytes)
                case .error(let bytes): (.error, bytes)
                case .unknownName: (.unknownName, ByteSlice([]))
                }
            fields.write(kind.rawValue)
            fields.write(number)
            content = body
        case .credit(let bytes):
            fields.write(Kind.credit.rawValue)
            fields.write(bytes)
            content = ByteSlice([])
        }
        let length = fields.bytes.count + content.count
        return ByteSlice(StreamMessageParser.header(of: length) + fields.bytes, then: content)
    }

    /// Reads a record without its length. Returns nil if it is of a kind that a later version has.
    package init?(reading message: ByteSlice) throws(WireError) {
        let read = try message.withUnsafeBytes { bytes throws(WireError) -> CallRecord? in
            var fields = FieldReader(bytes)
            guard let kind = Kind(rawValue: try fields.number(UInt8.self, "the kind of a call's record"))
            else {
                return nil
            }
            let number = try fields.number(UInt64.self, "the number of a call")
            var timeout: UInt32 = 0
            var name = ""
            if kind == .request {
                timeout = try fields.number(UInt32.self, "the timeout of a call")
                name = try fields.shortText("the name of a call")
            }
            let content = message[bytes.count - fields.remaining..<bytes.count]
            switch kind {
            case .request:
                return .request(number: number, timeout: timeout, name: name, content: content)
            case .answer: return .answer(number: number, .answer(content))
            case .error: return .answer(number: number, .error(content))
            case .cancel, .unknownName, .credit: try fields.finish("a call's record")
            }
            return switch kind {
            case .cancel: .cancel(number: number)
            case .unknownName: .answer(number: number, .unknownName)
            default: .credit(number)
            }
        }
        guard let read else { return nil }
        self = read
    }
}
