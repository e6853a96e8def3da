import NighCore

/// The sender's side of one conversation about one file, without I/O. It takes what was received and what happened to
/// the file, and returns what has to be done. If a conversation ends before the file is complete, another conversation
/// follows, with a new value of this type.
struct FileSendMachine {
    /// What the caller has to do, in this order.
    enum Step: Equatable {
        case send(FileMessage)
        /// Check whether the file begins with `offset` bytes of that hash, then call `compared`.
        case compare(offset: Int, hash: [UInt8])
        /// Send the file from this offset on, then call `reachedEnd`.
        case stream(from: Int)
        /// The other side has written this many bytes.
        case stored(Int)
        /// The transfer is over; nothing more is sent.
        case over(Ending)
    }

    /// How a transfer ended.
    enum Ending: Equatable {
        /// Both sides have the same file.
        case delivered
        /// The other side ended it.
        case stopped(FileStop)
        /// This side ended it.
        case stoppedHere(FileStop)
    }

    private enum State: Equatable {
        case new
        case offering
        case comparing(offset: Int)
        case streaming
        case ending(total: Int, hash: [UInt8])
        case over
    }

    private let offer: FileOffer
    private var state = State.new
    /// The offset up to which the file was sent, or did not have to be.
    private(set) var position = 0
    /// The number of bytes that the other side has reported as written.
    private(set) var stored = 0

    init(_ offer: FileOffer) { self.offer = offer }

    /// Whether the file's bytes have to be sent now.
    var isStreaming: Bool { state == .streaming }

    /// Begins the conversation with the offer.
    mutating func begin() -> [Step] {
        guard state == .new else { return [] }
        state = .offering
        return [.send(.offer(offer))]
    }

    /// Handles a message from the other side.
    mutating func receive(_ payload: ByteSlice) -> [Step] {
        guard state != .over else { return [] }
        do throws(FileStop.Breach) {
            return try handle(FileMessage(payload))
        } catch {
            return stop(error.stop)
        }
    }

    private mutating func handle(_ message: FileMessage) throws(FileStop.Breach) -> [Step] {
        switch (message, state) {
        case (.stop(let stop), _):
            state = .over
            return [.over(.stopped(stop))]
        case (.waiting, .offering): return []
        case (.ready(let offset, let hash), .offering):
            if let size = offer.size, offset > size {
                throw .init("it has \(offset) bytes of a file of \(size)")
            }
            guard offset > 0 else { return stream(from: 0) }
            state = .comparing(offset: offset)
            return [.compare(offset: offset, hash: hash)]
        case (.stored(let count), .streaming), (.stored(let count), .ending):
            guard (stored...position).contains(count) else { throw .init("it has stored \(count) bytes") }
            stored = count
            return [.stored(count)]
        case (.done(let total, let hash), .ending(let ownTotal, let ownHash)):
            guard total == ownTotal, hash == ownHash else {
                return stop(FileStop(.damaged, "the receiver wrote a file that differs from what was sent"))
            }
            stored = total
            state = .over
            return [.stored(total), .over(.delivered)]
        default: throw .init("a message comes out of turn")
        }
    }

    /// Takes the result of `compare`.
    mutating func compared(isSame: Bool) -> [Step] {
        guard case .comparing(let offset) = state else { return [] }
        return stream(from: isSame ? offset : 0)
    }

    private mutating func stream(from offset: Int) -> [Step] {
        state = .streaming
        position = offset
        stored = offset
        return [.send(.begin(offset: offset)), .stream(from: offset)]
    }

    /// Notes that `count` more bytes were sent.
    mutating func sent(_ count: Int) { position += count }

    /// Notes that the whole file was sent, with its hash.
    mutating func reachedEnd(hash: [UInt8]) -> [Step] {
        guard state == .streaming else { return [] }
        state = .ending(total: position, hash: hash)
        return [.send(.end(total: position, hash: hash))]
    }

    /// Ends the transfer from this side.
    mutating func stop(_ stop: FileStop) -> [Step] {
        guard state != .over else { return [] }
        let hasBegun = state != .new
        state = .over
        return (hasBegun ? [.send(.stop(stop))] : []) + [.over(.stoppedHere(stop))]
    }
}
