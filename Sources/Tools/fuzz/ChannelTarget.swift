import NighCore

/// The messages of a channel in the bytes of a stream, which are changed, and cut anywhere. However they are cut, the
/// same messages and the same error must come.
enum ChannelTarget {
    /// Returns the number of messages that were read.
    @discardableResult
    static func run(_ mutator: inout Mutator) throws -> Int {
        let limit = mutator.pick([0, 64, 5_000, 70_000])
        let frames = (0...mutator.number(below: 6)).map { _ in frame(&mutator) }
        let bytes = mutator.perhapsChanged(frames.flatMap { $0 }, with: frames)
        let (expected, expectedFault) = plainMessages(in: bytes, limit: limit)
        var parser = StreamMessageParser()
        var messages: [ByteSlice] = []
        var fault: String?
        for slice in mutator.cut(bytes) where fault == nil {
            parser.append(slice)
            do throws(WireError) {
                while let message = try parser.next(limit: limit) { messages.append(message) }
            } catch {
                if error.message.isEmpty { throw Finding("a message is refused without a reason") }
                fault = error.message
            }
        }
        if (fault == nil) != (expectedFault == nil) {
            throw Finding("\(fault ?? "no error"), expected \(expectedFault ?? "none")")
        }
        // A message is a slice of what has come, or a copy. Neither may change when more comes.
        guard messages.map(\.bytes) == expected else {
            throw Finding("\(messages.count) messages, not the \(expected.count) that have come")
        }
        return messages.count
    }

    private static func frame(_ mutator: inout Mutator) -> [UInt8] {
        let count = mutator.pick([0, 1, 3, 64, 65, 300, 5_000, mutator.number(below: 20_000)])
        return StreamMessageParser.header(of: count) + (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    }

    /// Finds the messages in the simplest way. Returns also why there are no more, if one is too long.
    private static func plainMessages(in bytes: [UInt8], limit: Int) -> (messages: [[UInt8]], fault: String?)
    {
        var messages: [[UInt8]] = []
        var rest = bytes[...]
        while rest.count >= 4 {
            let length = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
            guard length <= limit else { return (messages, "\(length) bytes are too many") }
            guard rest.count >= 4 + length else { break }
            messages.append(Array(rest.dropFirst(4).prefix(length)))
            rest = rest.dropFirst(4 + length)
        }
        return (messages, nil)
    }
}
