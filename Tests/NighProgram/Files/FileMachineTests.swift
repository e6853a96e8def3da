import NighCore
import NighTestKit
import Testing

@testable import nigh

/// Tests the messages between the sender and the receiver of a file, without any file.
@Suite(.callsPrograms) struct FileMachineTests {
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

    @Test("Each message is read as it was written")
    func roundTrip() throws {
        for message in messages { #expect(try FileMessage(said(message)) == message) }
    }

    @Test("The bytes are those in the description of the protocol")
    func bytes() {
        #expect(
            FileMessage.offer(FileOffer(name: "ab", size: 258)).bytes
                == [1, 1, 0, 0, 0, 0, 0, 0, 1, 2, 0, 2, 0x61, 0x62])
        #expect(FileMessage.begin(offset: 3).bytes == [3, 0, 0, 0, 0, 0, 0, 0, 3])
        #expect(FileMessage.stop(FileStop(.declined, "no")).bytes == [8, 2, 0, 2, 0x6E, 0x6F])
        #expect(FileMessage.data(ByteSlice([5])).bytes == [FileMessage.dataMark, 5])
    }

    @Test("A message that is cut short, too long or empty is a violation")
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
        var receiving = FileReceiveMachine()
        let steps = receiving.receive(ByteSlice([1, 2, 9, 9, 9]))
        guard case .send(.stop(let stop)) = steps.first else { return #expect(Bool(false), "\(steps)") }
        #expect(stop.reason == .version)
        #expect(steps.last == .over(.stoppedHere(stop)))
    }

    @Test("The hash of the pieces is the hash of the whole, and reading it in between changes nothing")
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
        var sending: FileSendMachine
        var receiving: FileReceiveMachine
        var file: [UInt8]
        var there: [UInt8]
        var ends: (sender: FileSendMachine.Ending?, receiver: FileReceiveMachine.Ending?)
        var reported = 0

        init(_ file: [UInt8], there: [UInt8] = [], size: Int? = nil, mostBytes: Int = .max) {
            self.file = file
            self.there = there
            sending = FileSendMachine(FileOffer(name: "f", size: size ?? file.count))
            receiving = FileReceiveMachine(mostBytes: mostBytes)
        }

        static func hash(_ bytes: some Collection<UInt8>) -> [UInt8] {
            let running = RunningHash()
            Array(bytes).withUnsafeBytes { running.update($0) }
            return running.value
        }

        mutating func run() { act(sending.begin()) }

        mutating func act(_ steps: [FileSendMachine.Step]) {
            for step in steps {
                switch step {
                case .send(let message): act(receiving.receive(ByteSlice(message.bytes)))
                case .compare(let offset, let hash):
                    act(sending.compared(isSame: Self.hash(file.prefix(offset)) == hash))
                case .stream(let offset):
                    var rest = file[offset...]
                    while !rest.isEmpty, sending.isStreaming {
                        let piece = ByteSlice(rest.prefix(100_000))
                        rest = rest.dropFirst(100_000)
                        sending.sent(piece.count)
                        act(receiving.receive(ByteSlice(FileMessage.data(piece).bytes)))
                    }
                    act(sending.reachedEnd(hash: Self.hash(file)))
                case .stored(let count): reported = count
                case .over(let ending): ends.sender = ending
                }
            }
        }

        mutating func act(_ steps: [FileReceiveMachine.Step]) {
            for step in steps {
                switch step {
                case .send(let message): act(sending.receive(ByteSlice(message.bytes)))
                case .decide: act(receiving.accept(offset: there.count, hash: Self.hash(there)))
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

    @Test(
        "A file is transferred completely, however much of it is already there",
        arguments: [0, 1, 499_999, 1_000_003] as [Int])
    func transfer(_ count: Int) {
        var pair = Pair(file, there: Array(file.prefix(count)))
        pair.run()
        #expect(pair.ends.sender == .delivered && pair.ends.receiver == .received)
        #expect(pair.there == file)
        #expect(pair.reported == file.count)
    }

    @Test("A partial file that differs from the file's beginning is sent from the start")
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

    @Test("Data that is written differently from what was sent is reported to both sides")
    func damage() {
        var pair = Pair(file)
        pair.there = []
        pair.receiving = FileReceiveMachine()
        var sending = pair.sending
        _ = sending.begin()
        _ = pair.receiving.receive(said(.offer(FileOffer(name: "f", size: 3))))
        _ = pair.receiving.accept(offset: 0, hash: hash)
        _ = pair.receiving.receive(said(.begin(offset: 0)))
        _ = pair.receiving.receive(said(.data(ByteSlice([1, 2, 3]))))
        #expect(pair.receiving.receive(said(.end(total: 3, hash: hash))) == [.check])
        let stop = FileStop(.damaged, "the written file differs from what was sent")
        #expect(
            pair.receiving.hashed([UInt8](repeating: 8, count: 32))
                == [.send(.stop(stop)), .over(.stoppedHere(stop))])
    }

    @Test("More bytes than offered or accepted end the transfer")
    func tooMuch() {
        var pair = Pair(file, size: 10)
        pair.run()
        guard case .stoppedHere(let stop) = pair.ends.receiver else {
            return #expect(Bool(false), "\(pair.ends)")
        }
        #expect(stop.reason == .breach && pair.ends.sender == .stopped(stop) && pair.there.count <= 10)

        pair = Pair(file, mostBytes: 999_999)
        pair.run()
        guard case .stoppedHere(let stop) = pair.ends.receiver else {
            return #expect(Bool(false), "\(pair.ends)")
        }
        #expect(stop.reason == .tooLarge && pair.there.isEmpty)
    }

    @Test("A file of unknown size is accepted only up to the limit")
    func unknownSize() {
        var receiving = FileReceiveMachine(mostBytes: 4)
        _ = receiving.receive(said(.offer(FileOffer(name: "f", size: nil))))
        _ = receiving.accept(offset: 0, hash: hash)
        _ = receiving.receive(said(.begin(offset: 0)))
        #expect(receiving.receive(said(.data(ByteSlice([1, 2, 3])))) == [.store(ByteSlice([1, 2, 3]))])
        guard case .send(.stop(let stop)) = receiving.receive(said(.data(ByteSlice([4, 5])))).first else {
            return #expect(Bool(false))
        }
        #expect(stop.reason == .tooLarge)
    }

    @Test("A sender leaves a receiver that claims to have impossible data")
    func lies() {
        for lie: [FileMessage] in [
            [.ready(offset: 11, hash: hash)], [.stored(1)], [.done(total: 10, hash: hash)],
            [.ready(offset: 0, hash: hash), .stored(1)],
            [.ready(offset: 0, hash: hash), .ready(offset: 0, hash: hash)],
            [.begin(offset: 0)], [.data(ByteSlice([1]))],
        ] {
            var sending = FileSendMachine(FileOffer(name: "f", size: 10))
            _ = sending.begin()
            var last: [FileSendMachine.Step] = []
            for message in lie { last = sending.receive(said(message)) }
            guard case .over(.stoppedHere(let stop)) = last.last else {
                return #expect(Bool(false), "\(lie)")
            }
            #expect(stop.reason == .breach)
            #expect(sending.receive(said(.waiting)) == [])
        }
    }

    @Test("Random messages make either side end the transfer, and nothing else")
    func noise() {
        var chance = SeededGenerator(seed: 20_261_121)
        for _ in 0..<2_000 {
            var sending = FileSendMachine(FileOffer(name: "f", size: 1_000))
            var receiving = FileReceiveMachine(mostBytes: 2_000)
            _ = sending.begin()
            var stored = 0
            for _ in 0..<12 {
                var bytes = messages.randomElement(using: &chance)?.bytes ?? []
                if Bool.random(using: &chance), !bytes.isEmpty {
                    bytes[Int.random(in: 0..<bytes.count, using: &chance)] = .random(
                        in: 0...255, using: &chance)
                }
                if Int.random(in: 0..<8, using: &chance) == 0 { bytes.removeLast(min(bytes.count, 3)) }
                for step in sending.receive(ByteSlice(bytes)) {
                    if case .compare = step { _ = sending.compared(isSame: .random(using: &chance)) }
                }
                for step in receiving.receive(ByteSlice(bytes)) {
                    switch step {
                    case .decide: _ = receiving.accept(offset: 5, hash: hash)
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
