import NighCore
import NighForwarding

/// The answer at the beginning of a forwarded connection, which is changed, and cut anywhere; and names of streams that
/// are ports, or nearly. However the bytes are cut, the same answer and the same rest must come.
enum ForwardingTarget {
    private static let answers: [[UInt8]] = [
        ForwardingAnswer.connected(grace: .seconds(600)), .refused(.notAllowed), .refused(.notPaired),
        .refused(.nobodyListens), .refused(.full(256)), .refused(.failed),
    ].map(\.bytes)
    private static let names = ["1", "22", "65535", "65536", "0", "022", "+22", "ssh"].map { Array($0.utf8) }

    /// Returns whether there was an answer.
    @discardableResult
    static func run(_ mutator: inout Mutator) throws -> Bool {
        try check(name: mutator.perhapsChanged(mutator.pick(names), with: names))
        let connection = (0..<mutator.number(below: 300)).map { UInt8(truncatingIfNeeded: $0) }
        let bytes = mutator.perhapsChanged(mutator.pick(answers), with: answers) + connection
        var reader = ForwardingAnswerReader()
        var answer: ForwardingAnswer?
        var rest: [UInt8] = []
        for slice in mutator.cut(bytes) {
            guard answer == nil else {
                rest += slice.bytes
                continue
            }
            if let (read, more) = try reader.append(slice) { (answer, rest) = (read, more.bytes) }
        }
        guard bytes.count >= ForwardingAnswer.byteCount else {
            if answer != nil { throw Finding("an answer of \(bytes.count) bytes") }
            return false
        }
        guard let answer, rest == Array(bytes.dropFirst(ForwardingAnswer.byteCount)) else {
            throw Finding("\(rest.count) bytes behind the answer, of \(bytes.count) in all")
        }
        var again = ForwardingAnswerReader()
        guard try again.append(ByteSlice(answer.bytes))?.answer == answer else {
            throw Finding("\(answer) is another answer when it is written and read")
        }
        return true
    }

    private static func check(name: [UInt8]) throws {
        let name = String(decoding: name, as: UTF8.self)
        if let port = ForwardingName.port(name), "\(port)" != name || port == 0 {
            throw Finding("\"\(name)\" is read as port \(port)")
        }
    }
}
