/// Puts messages together that were too long for a packet. Messages that do not come whole are forgotten.
struct FragmentAssembly {
    private struct Incomplete {
        let number: UInt32
        var parts: [[UInt8]?]
        var missing: Int
        var byteCount = 0
    }

    /// The messages that may be incomplete at a time.
    private static let mostMessages = 8

    private let longestMessage: Int
    private var messages: [Incomplete] = []

    /// The bytes of the messages that are incomplete.
    var byteCount: Int { messages.reduce(0) { $0 + $1.byteCount } }

    init(longestMessage: Int) { self.longestMessage = longestMessage }

    /// Adds a part, which has not come before. Returns the message once it is whole.
    mutating func add(_ part: UnsafeRawBufferPointer, _ fragment: DatagramContent.Fragment) -> [UInt8]? {
        let index: Int
        if let known = messages.firstIndex(where: { $0.number == fragment.message }) {
            index = known
        } else {
            if messages.count == Self.mostMessages { messages.removeFirst() }
            let count = Int(fragment.count)
            messages.append(
                Incomplete(
                    number: fragment.message, parts: Array(repeating: nil, count: count), missing: count))
            index = messages.count - 1
        }
        let place = Int(fragment.index)
        guard messages[index].parts.count == Int(fragment.count), messages[index].parts[place] == nil,
            messages[index].byteCount + part.count <= longestMessage
        else {
            messages.remove(at: index)
            return nil
        }
        messages[index].parts[place] = Array(part)
        messages[index].byteCount += part.count
        messages[index].missing -= 1
        guard messages[index].missing == 0 else { return nil }
        return messages.remove(at: index).parts.flatMap { $0 ?? [] }
    }
}
