import NighCore

/// The sender's side of one conversation about one file, without any input or output: it is told what was heard and what became of
/// the file, and says what is to be done. A conversation that ends before the file is through is followed by another, with another of these.
struct FileSending {
    /// What is to be done, in this order.
    enum Step: Equatable {
        case say(FileMessage)
        /// Look whether the file begins with so many bytes of that hash, and tell `compared`.
        case compare(offset: Int, hash: [UInt8])
        /// Send the file from there on, then call `reachedEnd`.
        case stream(from: Int)
        /// The other side has written so much.
        case stored(Int)
        /// Nothing more is to be said.
        case over(Ending)
    }

    /// How it ended.
    enum Ending: Equatable {
        /// Both have the same.
        case delivered
        /// The other side ended it.
        case stopped(FileStop)
        /// This side ended it.
        case gaveUp(FileStop)
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
    /// Up to where the file was sent, or did not have to be.
    private(set) var position = 0
    /// How much the other side has said it has.
    private(set) var stored = 0

    init(_ offer: FileOffer) { self.offer = offer }

    /// Whether the file's bytes are to be sent now.
    var isStreaming: Bool { state == .streaming }

    /// The conversation has begun.
    mutating func begin() -> [Step] {
        guard state == .new else { return [] }
        state = .offering
        return [.say(.offer(offer))]
    }

    /// The other side has said this.
    mutating func heard(_ payload: ByteSlice) -> [Step] {
        guard state != .over else { return [] }
        do throws(FileStop.Breach) {
            return try took(FileMessage(payload))
        } catch {
            return stop(error.stop)
        }
    }

    private mutating func took(_ message: FileMessage) throws(FileStop.Breach) -> [Step] {
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
                return stop(FileStop(.damaged, "the other side has written something else than was sent"))
            }
            stored = total
            state = .over
            return [.stored(total), .over(.delivered)]
        default: throw .init("a message comes out of turn")
        }
    }

    /// What `compare` asked for.
    mutating func compared(isSame: Bool) -> [Step] {
        guard case .comparing(let offset) = state else { return [] }
        return stream(from: isSame ? offset : 0)
    }

    private mutating func stream(from offset: Int) -> [Step] {
        state = .streaming
        position = offset
        stored = offset
        return [.say(.begin(offset: offset)), .stream(from: offset)]
    }

    /// So many bytes more were sent.
    mutating func sent(_ count: Int) { position += count }

    /// All was sent, and this is the hash of the whole file.
    mutating func reachedEnd(hash: [UInt8]) -> [Step] {
        guard state == .streaming else { return [] }
        state = .ending(total: position, hash: hash)
        return [.say(.end(total: position, hash: hash))]
    }

    /// This side ends it.
    mutating func stop(_ stop: FileStop) -> [Step] {
        guard state != .over else { return [] }
        let hasBegun = state != .new
        state = .over
        return (hasBegun ? [.say(.stop(stop))] : []) + [.over(.gaveUp(stop))]
    }
}
