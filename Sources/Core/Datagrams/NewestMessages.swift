/// Messages that wait for room: of each key the newest one.
struct NewestMessages {
    /// The most keys that have a waiting message.
    static let mostKeys = 16

    private var messages: [(order: DatagramOrder, bytes: [UInt8])] = []

    /// The bytes of all messages that wait.
    var byteCount: Int { messages.reduce(0) { $0 + $1.bytes.count } }

    var isEmpty: Bool { messages.isEmpty }

    var count: Int { messages.count }

    /// The length of the message that has waited longest; nil if none waits.
    var firstByteCount: Int? { messages.first?.bytes.count }

    /// Keeps a message, whose key must not be there. Returns false if there are enough keys already.
    mutating func add(_ message: UnsafeRawBufferPointer, _ order: DatagramOrder) -> Bool {
        guard messages.count < Self.mostKeys else { return false }
        messages.append((order, Array(message)))
        return true
    }

    /// Adds messages whose keys are not there.
    mutating func add(_ others: NewestMessages) { messages += others.messages }

    /// Removes the message with this key. Returns whether there was one.
    mutating func remove(_ order: DatagramOrder) -> Bool {
        guard let index = messages.firstIndex(where: { $0.order == order }) else { return false }
        messages.remove(at: index)
        return true
    }

    /// Takes out the message that has waited longest.
    mutating func popFirst() -> (order: DatagramOrder, bytes: [UInt8])? {
        messages.isEmpty ? nil : messages.removeFirst()
    }

    /// Takes out all messages.
    mutating func takeAll() -> NewestMessages {
        defer { messages = [] }
        return self
    }
}
