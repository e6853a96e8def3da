import NighCore

/// The receiver's side of one conversation about one file, without any input or output, like `FileSending`.
struct FileReceiving {
    /// What is to be done, in this order.
    enum Step: Equatable {
        case say(FileMessage)
        /// Decide whether the file is wanted and how much of it is there, and tell `take` or `stop`.
        case decide(FileOffer)
        /// What comes next stands at that offset: forget what is there behind it.
        case resume(at: Int)
        /// Write this behind what is there, then call `stored`.
        case store(ByteSlice)
        /// That was all: find the hash of all that is there, and tell `hashed`.
        case check
        /// It is what was sent: give it its name, and call `kept`.
        case keep
        /// Nothing more is to be said.
        case over(Ending)
    }

    /// How it ended.
    enum Ending: Equatable {
        /// Both have the same.
        case received
        /// The other side ended it.
        case stopped(FileStop)
        /// This side ended it.
        case refused(FileStop)
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

    /// What is the largest that is taken.
    private let mostBytes: Int
    private var state = State.new
    private(set) var offer: FileOffer?
    /// Up to where the file has come.
    private(set) var position = 0
    private var stored = 0
    private var told = 0

    /// What is told of what was stored, at least: small steps at first, then the same share of the whole.
    private static let leastStep = 128 << 10
    private static let stepShare = 256

    init(mostBytes: Int = .max) { self.mostBytes = mostBytes }

    /// Whether nothing was offered yet.
    var isNew: Bool { state == .new }

    /// Whether nobody has said yet that it may come.
    var isUndecided: Bool { state == .new || state == .deciding }

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
        case (.offer(let offer), .new):
            self.offer = offer
            guard offer.size ?? 0 <= mostBytes else { return stop(tooLarge) }
            state = .deciding
            return [.decide(offer)]
        case (.begin(let offset), .ready(let stated)):
            guard offset == 0 || offset == stated else { throw .init("it begins at \(offset)") }
            state = .receiving
            (position, stored, told) = (offset, offset, offset)
            return [.resume(at: offset)]
        case (.data(let data), .receiving):
            guard data.count <= (offer?.size ?? .max) - position else {
                throw .init("there is more than was offered")
            }
            guard data.count <= mostBytes - position else { return stop(tooLarge) }
            position += data.count
            return [.store(data)]
        case (.end(let total, let hash), .receiving):
            guard total == position, offer?.size ?? total == total else {
                throw .init("the end comes after \(position) bytes, and is said to be at \(total)")
            }
            state = .checking(hash: hash)
            return [.check]
        default: throw .init("a message comes out of turn")
        }
    }

    private var tooLarge: FileStop {
        FileStop(.tooLarge, "files of more than \(mostBytes) bytes are not taken")
    }

    /// It is wanted, and so much of it is there, with that hash.
    mutating func take(offset: Int, hash: [UInt8]) -> [Step] {
        guard state == .deciding else { return [] }
        state = .ready(offset: offset)
        return [.say(.ready(offset: offset, hash: hash))]
    }

    /// So many bytes more are written.
    mutating func stored(_ count: Int) -> [Step] {
        stored += count
        guard state != .over, stored - told >= max(Self.leastStep, stored / Self.stepShare) else { return [] }
        told = stored
        return [.say(.stored(stored))]
    }

    /// What `check` asked for.
    mutating func hashed(_ hash: [UInt8]) -> [Step] {
        guard case .checking(let expected) = state else { return [] }
        guard hash == expected else {
            return stop(FileStop(.damaged, "what was written is not what was sent"))
        }
        state = .keeping(hash: hash)
        return [.keep]
    }

    /// What `keep` asked for.
    mutating func kept() -> [Step] {
        guard case .keeping(let hash) = state else { return [] }
        state = .over
        return [.say(.done(total: position, hash: hash)), .over(.received)]
    }

    /// This side ends it.
    mutating func stop(_ stop: FileStop) -> [Step] {
        guard state != .over else { return [] }
        state = .over
        return [.say(.stop(stop)), .over(.refused(stop))]
    }
}
