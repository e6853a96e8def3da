import NighCore

/// The receiver's side of one conversation about one file, without I/O, like `FileSendMachine`.
struct FileReceiveMachine {
    /// What the caller has to do, in this order.
    enum Step: Equatable {
        case send(FileMessage)
        /// Decide whether the file is wanted and how much of it is there, then call `accept` or `stop`.
        case decide(FileOffer)
        /// The next bytes belong at that offset: drop what is there behind it.
        case resume(at: Int)
        /// Write this behind what is there, then call `stored`.
        case store(ByteSlice)
        /// The file has ended: find the hash of all that is there, then call `hashed`.
        case check
        /// The file is what was sent: give it its name, then call `kept`.
        case keep
        /// The transfer is over; nothing more is sent.
        case over(Ending)
    }

    /// How a transfer ended.
    enum Ending: Equatable {
        /// Both sides have the same file.
        case received
        /// The other side ended it.
        case stopped(FileStop)
        /// This side ended it.
        case stoppedHere(FileStop)
    }

    private enum State: Equatable {
        case new
        case deciding
        case ready(offset: Int)
        case receiving
        case checking(hash: [UInt8])
        case keeping(hash: [UInt8])
        case over
    }

    /// The size of the largest file that is accepted.
    private let mostBytes: Int
    private var state = State.new
    private(set) var offer: FileOffer?
    /// The offset up to which the file has arrived.
    private(set) var position = 0
    private var stored = 0
    private var reported = 0

    /// The minimum step between two `stored` messages: first this many bytes, later 1/`stepShare` of what is stored.
    private static let leastStep = 128 << 10
    private static let stepShare = 256

    init(mostBytes: Int = .max) { self.mostBytes = mostBytes }

    /// Whether nothing was offered yet.
    var isNew: Bool { state == .new }

    /// Whether the file is not accepted yet.
    var isUndecided: Bool { state == .new || state == .deciding }

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
        case (.offer(let offer), .new):
            self.offer = offer
            guard offer.size ?? 0 <= mostBytes else { return stop(tooLarge) }
            state = .deciding
            return [.decide(offer)]
        case (.begin(let offset), .ready(let stated)):
            guard offset == 0 || offset == stated else {
                throw .init("it begins at \(offset), not at 0 or \(stated)")
            }
            state = .receiving
            (position, stored, reported) = (offset, offset, offset)
            return [.resume(at: offset)]
        case (.data(let data), .receiving):
            guard data.count <= (offer?.size ?? .max) - position else {
                throw .init("it sent more than it offered")
            }
            guard data.count <= mostBytes - position else { return stop(tooLarge) }
            position += data.count
            return [.store(data)]
        case (.end(let total, let hash), .receiving):
            guard total == position, offer?.size ?? total == total else {
                throw .init("the file ended after \(position) bytes, but should have \(total)")
            }
            state = .checking(hash: hash)
            return [.check]
        default: throw .init("a message comes out of turn")
        }
    }

    private var tooLarge: FileStop {
        FileStop(.tooLarge, "files of more than \(mostBytes) bytes are not accepted")
    }

    /// Accepts the file, of which `offset` bytes with that hash are there.
    mutating func accept(offset: Int, hash: [UInt8]) -> [Step] {
        guard state == .deciding else { return [] }
        state = .ready(offset: offset)
        return [.send(.ready(offset: offset, hash: hash))]
    }

    /// Notes that `count` more bytes are written.
    mutating func stored(_ count: Int) -> [Step] {
        stored += count
        guard state != .over, stored - reported >= max(Self.leastStep, stored / Self.stepShare) else {
            return []
        }
        reported = stored
        return [.send(.stored(stored))]
    }

    /// Takes the result of `check`.
    mutating func hashed(_ hash: [UInt8]) -> [Step] {
        guard case .checking(let expected) = state else { return [] }
        guard hash == expected else {
            return stop(FileStop(.damaged, "the written file differs from what was sent"))
        }
        state = .keeping(hash: hash)
        return [.keep]
    }

    /// Notes that `keep` is done.
    mutating func kept() -> [Step] {
        guard case .keeping(let hash) = state else { return [] }
        state = .over
        return [.send(.done(total: position, hash: hash)), .over(.received)]
    }

    /// Ends the transfer from this side.
    mutating func stop(_ stop: FileStop) -> [Step] {
        guard state != .over else { return [] }
        state = .over
        return [.send(.stop(stop)), .over(.stoppedHere(stop))]
    }
}
