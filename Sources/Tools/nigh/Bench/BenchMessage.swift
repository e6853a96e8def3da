import NighCore

/// What two `nigh` say to each other about a measurement: messages of the main lane, a byte that says which and then fields in
/// network order. `docs/nigh/measuring.md` is their description.
///
/// A value of this type cannot be wrong in itself; whether it is allowed at the moment is for whoever gets it to say.
enum BenchMessage: Hashable, Sendable {
    /// The first word of whoever wants to measure: which versions it speaks.
    case hello(versions: ClosedRange<UInt8>, software: String)
    /// The answer: which of them is spoken from here on, and what is taken.
    case welcome(version: UInt8, limits: BenchLimits, software: String)
    /// What is to be measured next.
    case order(BenchOrder)
    /// The order is taken: both begin.
    case ready(run: UInt16)
    /// The order, or the hello, is not taken.
    case refused(run: UInt16, words: String)
    /// How far the run has come where this is said.
    case progress(run: UInt16, BenchProgress)
    /// All that was sent in a run has come; so much of it was measured.
    case outcome(run: UInt16, BenchCount)

    /// What this version is.
    static let version: UInt8 = 1
    /// No message is longer.
    static let longest = 1_024
    private static let mark = Array("nigh".utf8)

    /// As it is sent.
    var bytes: [UInt8] {
        var fields = FieldWriter()
        switch self {
        case .hello(let versions, let software):
            fields.write(UInt8(1))
            fields.write(raw: Self.mark)
            fields.write(versions.lowerBound)
            fields.write(versions.upperBound)
            fields.write(short: software)
        case .welcome(let version, let limits, let software):
            fields.write(UInt8(2))
            fields.write(version)
            fields.write(limits.largestMessage)
            fields.write(limits.longestRun)
            fields.write(short: software)
        case .order(let order):
            fields.write(UInt8(3))
            fields.write(order.run)
            fields.write(order.direction.number)
            fields.write(order.size)
            fields.write(order.warmUp)
            fields.write(order.measured)
        case .ready(let run):
            fields.write(UInt8(4))
            fields.write(run)
        case .refused(let run, let words):
            fields.write(UInt8(5))
            fields.write(run)
            fields.write(short: words)
        case .progress(let run, let progress):
            fields.write(UInt8(6))
            fields.write(run)
            fields.write(progress.microseconds)
            fields.write(progress.sent)
            fields.write(progress.received)
        case .outcome(let run, let count):
            fields.write(UInt8(7))
            fields.write(run)
            fields.write(count)
        }
        return fields.bytes
    }

    /// Reads one; fails for everything that is not exactly one.
    init(_ bytes: UnsafeRawBufferPointer) throws(BenchBreach) {
        guard bytes.count <= Self.longest else { throw BenchBreach("a message of \(bytes.count) bytes") }
        var fields = BenchReader(bytes)
        switch try fields.number(UInt8.self) {
        case 1:
            guard try fields.raw(Self.mark.count) == Self.mark else {
                throw BenchBreach("a hello of something else")
            }
            let (lowest, highest) = (try fields.number(UInt8.self), try fields.number(UInt8.self))
            guard lowest <= highest else {
                throw BenchBreach("a range of versions that ends before it begins")
            }
            self = .hello(versions: lowest...highest, software: try fields.words())
        case 2:
            self = .welcome(
                version: try fields.number(UInt8.self),
                limits: BenchLimits(
                    largestMessage: try fields.number(UInt32.self), longestRun: try fields.number(UInt32.self)
                ),
                software: try fields.words())
        case 3:
            let run = try fields.number(UInt16.self)
            guard let direction = BenchDirection(number: try fields.number(UInt8.self)) else {
                throw BenchBreach("an unknown direction")
            }
            self = .order(
                BenchOrder(
                    run: run, direction: direction, size: try fields.number(UInt32.self),
                    warmUp: try fields.number(UInt32.self), measured: try fields.number(UInt32.self)))
        case 4: self = .ready(run: try fields.number(UInt16.self))
        case 5: self = .refused(run: try fields.number(UInt16.self), words: try fields.words())
        case 6:
            self = .progress(
                run: try fields.number(UInt16.self),
                BenchProgress(
                    microseconds: try fields.number(UInt64.self), sent: try fields.amount(),
                    received: try fields.amount()))
        case 7: self = .outcome(run: try fields.number(UInt16.self), try fields.count())
        case let kind: throw BenchBreach("a message of the unknown kind \(kind)")
        }
        try fields.finish()
    }
}

/// The other side did what nobody may do.
struct BenchBreach: Error, Hashable, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// Which way messages go, as whoever wants to measure sees it.
enum BenchDirection: String, Hashable, Sendable, CaseIterable {
    /// From the one who measures to the host.
    case up
    /// From the host.
    case down
    /// Both ways at once.
    case both

    var number: UInt8 {
        switch self {
        case .up: 1
        case .down: 2
        case .both: 3
        }
    }

    init?(number: UInt8) {
        guard let direction = Self.allCases.first(where: { $0.number == number }) else { return nil }
        self = direction
    }

    var goesUp: Bool { self != .down }
    var goesDown: Bool { self != .up }
}

/// One measurement that is asked for.
struct BenchOrder: Hashable, Sendable {
    /// Counts the orders of a conversation from 1.
    var run: UInt16
    var direction: BenchDirection
    /// Bytes of each message.
    var size: UInt32
    /// Milliseconds that are not measured, and those that are.
    var warmUp: UInt32
    var measured: UInt32
}

/// What somebody lets themselves be asked for.
struct BenchLimits: Hashable, Sendable {
    /// The smallest message there is room for what a message says about itself.
    static let smallestMessage: UInt32 = 8
    /// What this program takes.
    static let own = BenchLimits(largestMessage: 16 << 20, longestRun: 600_000)

    /// In bytes.
    var largestMessage: UInt32
    /// In milliseconds, the warm-up included.
    var longestRun: UInt32

    /// What is wrong with `order`; nil where it is taken.
    func refusal(of order: BenchOrder) -> String? {
        if order.size < Self.smallestMessage || order.size > largestMessage {
            return "messages have \(Self.smallestMessage) to \(largestMessage) bytes, not \(order.size)"
        }
        let (time, overflow) = order.warmUp.addingReportingOverflow(order.measured)
        if overflow || time > longestRun || order.measured == 0 {
            return "a run lasts at most \(longestRun / 1_000) s"
        }
        return nil
    }
}

/// Messages and their bytes.
struct BenchAmount: Hashable, Sendable {
    var messages: UInt64 = 0
    var bytes: UInt64 = 0

    static func - (left: BenchAmount, right: BenchAmount) -> BenchAmount {
        BenchAmount(messages: left.messages &- right.messages, bytes: left.bytes &- right.bytes)
    }
}

/// Messages, their bytes, and the time they took.
struct BenchCount: Hashable, Sendable {
    var amount: BenchAmount
    var nanoseconds: UInt64

    /// Bytes a second; 0 where no time has passed.
    var rate: Double { nanoseconds > 0 ? Double(amount.bytes) * 1e9 / Double(nanoseconds) : 0 }
    /// Messages a second.
    var frequency: Double { nanoseconds > 0 ? Double(amount.messages) * 1e9 / Double(nanoseconds) : 0 }
}

extension BenchAmount {
    /// So many messages of one size.
    init(_ messages: Int, of size: Int) {
        self.init(messages: UInt64(messages), bytes: UInt64(messages) * UInt64(size))
    }
}

extension BenchCount {
    /// So many messages of one size, in a time that is none where it is negative.
    init(_ messages: Int, of size: Int, in time: Moment.Span) {
        self.init(amount: BenchAmount(messages, of: size), nanoseconds: UInt64(max(time.nanoseconds, 0)))
    }
}

/// How far a run has come at one end, from its beginning on, warm-up included.
struct BenchProgress: Hashable, Sendable {
    /// Since the run began there.
    var microseconds: UInt64
    var sent: BenchAmount
    var received: BenchAmount
}
