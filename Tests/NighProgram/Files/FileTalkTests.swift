import NighCore
import NighTestKit
import Testing

@testable import nigh

/// Tests the messages between the sender and the receiver of a file, without any file.
@Suite(.callsPrograms) struct FileTalkTests {
    private let hash = [UInt8](repeating: 7, count: FileMessage.hashLength)

    private func said(_ message: FileMessage) -> ByteSlice { ByteSlice(message.bytes) }

    private var messages: [FileMessage] {
        [
            .offer(FileOffer(name: "a name", size: 70_000)), .offer(FileOffer(name: "é/\u{0}", size: nil)),
            .ready(offset: 12, hash: hash), .begin(offset: 1 << 40), .data(ByteSlice([1, 2, 3])),
            .end(total: 0, hash: hash), .stored(9), .done(total: 3, hash: hash),
            .stop(FileStop(.noSpace, "full")), .waiting,
        ]
    }

    @Test("Each message is read as what was written")
    func roundTrip() throws {
        for message in messages { #expect(try FileMessage(said(message)) == message) }
    }

    @Test("The bytes are those of the description of the protocol")
    func bytes() {
        #expect(
            FileMessage.offer(FileOffer(name: "ab", size: 258)).bytes
                == [1, 1, 0, 0, 0, 0, 0, 0, 1, 2, 0, 2, 0x61, 0x62])
        #expect(FileMessage.begin(offset: 3).bytes == [3, 0, 0, 0, 0, 0, 0, 0, 3])
        #expect(FileMessage.stop(FileStop(.declined, "no")).bytes == [8, 2, 0, 2, 0x6E, 0x6F])
        #expect(FileMessage.data(ByteSlice([5])).bytes == [FileMessage.dataMark, 5])
    }

    @Test("What is cut short, too long, or nothing at all is a breach")
    func garbage() {
        for message in messages {
            let bytes = message.bytes
            if case .data = message { continue }
            for count in 0..<bytes.count {
                #expect(throws: FileStop.Breach.self) { try FileMessage(ByteSlice(bytes.prefix(count))) }
            }
            #expect(throws: FileStop.Breach.self) { try FileMessage(ByteSlice(bytes + [0])) }
        }
        #expect(throws: FileStop.Breach.self) { try FileMessage(ByteSlice([0])) }
        #expect(throws: FileStop.Breach.self) { try FileMessage(ByteSlice([4])) }
        #expect(throws: FileStop.Breach.self) {
            try FileMessage(ByteSlice([4] + [UInt8](repeating: 0, count: FileMessage.mostData + 1)))
        }
        let offer = { (bytes: [UInt8]) in try FileMessage(ByteSlice([1, 1] + bytes)) }
        #expect(throws: FileStop.Breach.self, "too large") {
            try offer([0x80, 0, 0, 0, 0, 0, 0, 0, 0, 1, 65])
        }
        #expect(throws: FileStop.Breach.self, "no name") { try offer([0, 0, 0, 0, 0, 0, 0, 0, 0, 0]) }
        #expect(throws: FileStop.Breach.self, "no UTF-8") {
            try offer([0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xFF])
        }
    }

    @Test("An offer of a later version is answered with a stop that says so")
    func version() {
        var receiving = FileReceiving()
        let steps = receiving.heard(ByteSlice([1, 2, 9, 9, 9]))
        guard case .say(.stop(let stop)) = steps.first else { return #expect(Bool(false), "\(steps)") }
        #expect(stop.reason == .version)
        #expect(steps.last == .over(.refused(stop)))
    }

    @Test("A hash of pieces is that of the whole, and looking at it in between changes nothing")
    func runningHash() {
        let running = RunningHash()
        for piece in [file[..<1], file[1..<70_000], file[70_000...]] {
            Array(piece).withUnsafeBytes { running.update($0) }
            _ = running.value
        }
        #expect(running.value == file.withUnsafeBytes { SHA256.hash($0) })
        running.reset()
        #expect(running.value == SHA256.hash(UnsafeRawBufferPointer(start: nil, count: 0)))
    }

    // MARK: Both sides

    /// A sender and a receiver that get each other's messages. The file is an array.
    private struct Pair {
        var sending: FileSending
        var receiving: FileReceiving
        var file: [UInt8]
        var there: [UInt8]
        var ends: (sender: FileSending.Ending?, receiver: FileReceiving.Ending?)
        var told = 0

        init(_ file: [UInt8], there: [UInt8] = [], size: Int? = nil, mostBytes: Int = .max) {
            self.file = file
            self.there = there
            sending = FileSending(FileOffer(name: "f", size: size ?? file.count))
            receiving = FileReceiving(mostBytes: mostBytes)
        }

        static func hash(_ bytes: some Collection<UInt8>) -> [UInt8] {
            let running = RunningHash()
            Array(bytes).withUnsafeBytes { running.update($0) }
            return running.value
        }

        mutating func run() { act(sending.begin()) }

        mutating func act(_ steps: [FileSending.Step]) {
            for step in steps {
                switch step {
                case .say(let message): act(receiving.heard(ByteSlice(message.bytes)))
                case .compare(let offset, let hash):
                    act(sending.compared(isSame: Self.hash(file.prefix(offset)) == hash))
                case .stream(let offset):
                    var rest = file[offset...]
                    while !rest.isEmpty, sending.isStreaming {
                        let piece = ByteSlice(rest.prefix(100_000))
                        rest = rest.dropFirst(100_000)
                        sending.sent(piece.count)
                        act(receiving.heard(ByteSlice(FileMessage.data(piece).bytes)))
                    }
                    act(sending.reachedEnd(hash: Self.hash(file)))
                case .stored(let count): told = count
                case .over(let ending): ends.sender = ending
                }
            }
        }

        mutating func act(_ steps: [FileReceiving.Step]) {
            for step in steps {
                switch step {
                case .say(let message): act(sending.heard(ByteSlice(message.bytes)))
                case .decide: act(receiving.take(offset: there.count, hash: Self.hash(there)))
                case .resume(let offset): there = Array(there.prefix(offset))
                case .store(let bytes):
                    there += bytes.bytes
                    act(receiving.stored(bytes.count))
                case .check: act(receiving.hashed(Self.hash(there)))
                case .keep: act(receiving.kept())
                case .over(let ending): ends.receiver = ending
                }
            }
        }
    }

    private let file = (0..<1_000_003).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }

    @Test("A file goes over, whatever of it is there", arguments: [0, 1, 499_999, 1_000_003] as [Int])
    func transfer(_ count: Int) {
        var pair = Pair(file, there: Array(file.prefix(count)))
        pair.run()
        #expect(pair.ends.sender == .delivered && pair.ends.receiver == .received)
        #expect(pair.there == file)
        #expect(pair.told == file.count)
    }

    @Test("What is there and is not how the file begins is sent anew")
    func anotherBeginning() {
        var pair = Pair(file, there: [1, 2, 3])
        pair.run()
        #expect(pair.ends.sender == .delivered && pair.there == file)
    }

    @Test("An empty file is a file")
    func empty() {
        var pair = Pair([])
        pair.run()
        #expect(pair.ends.sender == .delivered && pair.ends.receiver == .received && pair.there.isEmpty)
    }

    @Test("What is written otherwise than sent is told to both")
    func damage() {
        var pair = Pair(file)
        pair.there = []
        pair.receiving = FileReceiving()
        var sending = pair.sending
        _ = sending.begin()
        _ = pair.receiving.heard(said(.offer(FileOffer(name: "f", size: 3))))
        _ = pair.receiving.take(offset: 0, hash: hash)
        _ = pair.receiving.heard(said(.begin(offset: 0)))
        _ = pair.receiving.heard(said(.data(ByteSlice([1, 2, 3]))))
        #expect(pair.receiving.heard(said(.end(total: 3, hash: hash))) == [.check])
        let stop = FileStop(.damaged, "what was written is not what was sent")
        #expect(
            pair.receiving.hashed([UInt8](repeating: 8, count: 32))
                == [.say(.stop(stop)), .over(.refused(stop))])
    }

    @Test("More than was offered, or than is taken, ends it")
    func tooMuch() {
        var pair = Pair(file, size: 10)
        pair.run()
        guard case .refused(let stop) = pair.ends.receiver else {
            return #expect(Bool(false), "\(pair.ends)")
        }
        #expect(stop.reason == .breach && pair.ends.sender == .stopped(stop) && pair.there.count <= 10)

        pair = Pair(file, mostBytes: 999_999)
        pair.run()
        guard case .refused(let stop) = pair.ends.receiver else {
            return #expect(Bool(false), "\(pair.ends)")
        }
        #expect(stop.reason == .tooLarge && pair.there.isEmpty)
    }

    @Test("Of a size that nobody knows before, no more is taken than is allowed")
    func unknownSize() {
        var receiving = FileReceiving(mostBytes: 4)
        _ = receiving.heard(said(.offer(FileOffer(name: "f", size: nil))))
        _ = receiving.take(offset: 0, hash: hash)
        _ = receiving.heard(said(.begin(offset: 0)))
        #expect(receiving.heard(said(.data(ByteSlice([1, 2, 3])))) == [.store(ByteSlice([1, 2, 3]))])
        guard case .say(.stop(let stop)) = receiving.heard(said(.data(ByteSlice([4, 5])))).first else {
            return #expect(Bool(false))
        }
        #expect(stop.reason == .tooLarge)
    }

    @Test("A receiver that says it has what it cannot have is left")
    func lies() {
        for lie: [FileMessage] in [
            [.ready(offset: 11, hash: hash)], [.stored(1)], [.done(total: 10, hash: hash)],
            [.ready(offset: 0, hash: hash), .stored(1)],
            [.ready(offset: 0, hash: hash), .ready(offset: 0, hash: hash)],
            [.begin(offset: 0)], [.data(ByteSlice([1]))],
        ] {
            var sending = FileSending(FileOffer(name: "f", size: 10))
            _ = sending.begin()
            var last: [FileSending.Step] = []
            for message in lie { last = sending.heard(said(message)) }
            guard case .over(.gaveUp(let stop)) = last.last else { return #expect(Bool(false), "\(lie)") }
            #expect(stop.reason == .breach)
            #expect(sending.heard(said(.waiting)) == [])
        }
    }

    @Test("Neither side does anything with garbage but end it, whatever comes when")
    func noise() {
        var chance = SeededGenerator(seed: 20_261_121)
        for _ in 0..<2_000 {
            var sending = FileSending(FileOffer(name: "f", size: 1_000))
            var receiving = FileReceiving(mostBytes: 2_000)
            _ = sending.begin()
            var stored = 0
            for _ in 0..<12 {
                var bytes = messages.randomElement(using: &chance)?.bytes ?? []
                if Bool.random(using: &chance), !bytes.isEmpty {
                    bytes[Int.random(in: 0..<bytes.count, using: &chance)] = .random(
                        in: 0...255, using: &chance)
                }
                if Int.random(in: 0..<8, using: &chance) == 0 { bytes.removeLast(min(bytes.count, 3)) }
                for step in sending.heard(ByteSlice(bytes)) {
                    if case .compare = step { _ = sending.compared(isSame: .random(using: &chance)) }
                }
                for step in receiving.heard(ByteSlice(bytes)) {
                    switch step {
                    case .decide: _ = receiving.take(offset: 5, hash: hash)
                    case .resume(let offset): stored = offset
                    case .store(let data): stored += data.count
                    case .check: #expect(receiving.position == stored)
                    default: break
                    }
                }
                #expect(stored <= 2_000)
            }
        }
    }
}
