import NighCore

/// The control messages of a measurement: messages of the main lane, each a byte for the kind and then fields in
/// network order. `docs/reference/nigh/measuring.md` describes them.
///
/// A value of this type is always well-formed. Its receiver decides whether it is allowed at the moment.
enum BenchMessage: Hashable, Sendable {
    /// The guest's first message: the versions that it speaks.
    case hello(versions: ClosedRange<UInt8>, software: String)
    /// The host's answer to a hello: the version that both use from here on, and the host's limits.
    case welcome(version: UInt8, limits: BenchLimits, software: String)
    /// The guest orders the next measurement.
    case order(BenchOrder)
    /// The host accepts the order: both begin.
    case ready(run: UInt16)
    /// The host refuses the order or the hello.
    case refused(run: UInt16, reason: String)
    /// How far the run has come at the sender of this message.
    case progress(run: UInt16, BenchProgress)
    /// All messages of a run have arrived; this is the result.
    case outcome(run: UInt16, BenchCount)

    /// The version of the protocol.
    static let version: UInt8 = 1
    /// The maximum length of a message.
    static let longest = 1_024
    private static let mark = Array("nigh".utf8)

    /// The encoded message.
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
        case .refused(let run, let reason):
            fields.write(UInt8(5))
            fields.write(run)
            fields.write(short: reason)
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

    /// Decodes a message. Throws for bytes that are not exactly one message.
    init(_ bytes: UnsafeRawBufferPointer) throws(BenchBreach) {
        guard bytes.count <= Self.longest else { throw BenchBreach("a message of \(bytes.count) bytes") }
        var fields = BenchReader(bytes)
        switch try fields.number(UInt8.self) {
        case 1:
            guard try fields.raw(Self.mark.count) == Self.mark else {
                throw BenchBreach("a hello of another protocol")
            }
            let (lowest, highest) = (try fields.number(UInt8.self), try fields.number(UInt8.self))
            guard lowest <= highest else {
                throw BenchBreach("a range of versions that ends before it begins")
            }
            self = .hello(versions: lowest...highest, software: try fields.text())
        case 2:
            self = .welcome(
                version: try fields.number(UInt8.self),
                limits: BenchLimits(
                    largestMessage: try fields.number(UInt32.self), longestRun: try fields.number(UInt32.self)
                ),
                software: try fields.text())
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
        case 5: self = .refused(run: try fields.number(UInt16.self), reason: try fields.text())
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

/// A violation of the protocol by the other side.
struct BenchBreach: Error, Hashable, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// The direction of the messages, as the guest sees it.
enum BenchDirection: String, Hashable, Sendable, CaseIterable {
    /// From the guest to the host.
    case up
    /// From the host to the guest.
    case down
    /// Both directions at once.
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

/// One measurement that the guest orders.
struct BenchOrder: Hashable, Sendable {
    /// The number of the order in its conversation, from 1.
    var run: UInt16
    var direction: BenchDirection
    /// The size of each message in bytes.
    var size: UInt32
    /// The warm-up, which is not measured, and the measured time after it, both in milliseconds.
    var warmUp: UInt32
    var measured: UInt32
}

/// The limits within which a host accepts orders.
struct BenchLimits: Hashable, Sendable {
    /// The minimum size of a message, which has room for the fields of a measured message.
    static let smallestMessage: UInt32 = 8
    /// The limits of this program.
    static let own = BenchLimits(largestMessage: 16 << 20, longestRun: 600_000)

    /// The size of the largest message, in bytes.
    var largestMessage: UInt32
    /// The time of the longest run in milliseconds, including the warm-up.
    var longestRun: UInt32

    /// Returns why `order` is refused; nil if it is accepted.
    func refusal(of order: BenchOrder) -> String? {
        if order.size < Self.smallestMessage || order.size > largestMessage {
            return "messages have \(Self.smallestMessage) to \(largestMessage) bytes, not \(order.size)"
        }
        let (time, overflow) = order.warmUp.addingReportingOverflow(order.measured)
        if overflow || time > longestRun || order.measured == 0 {
            return "a run lasts more than 0 s and at most \(longestRun / 1_000) s"
        }
        return nil
    }
}

/// A number of messages, and their bytes.
struct BenchAmount: Hashable, Sendable {
    var messages: UInt64 = 0
    var bytes: UInt64 = 0

    static func - (left: BenchAmount, right: BenchAmount) -> BenchAmount {
        BenchAmount(messages: left.messages &- right.messages, bytes: left.bytes &- right.bytes)
    }
}

/// A number of messages, their bytes, and the time that they took.
struct BenchCount: Hashable, Sendable {
    var amount: BenchAmount
    var nanoseconds: UInt64

    /// Bytes per second; 0 if no time has passed.
    var rate: Double { nanoseconds > 0 ? Double(amount.bytes) * 1e9 / Double(nanoseconds) : 0 }
    /// Messages per second; 0 if no time has passed.
    var frequency: Double { nanoseconds > 0 ? Double(amount.messages) * 1e9 / Double(nanoseconds) : 0 }
}

extension BenchAmount {
    /// Creates the amount of `messages` messages of `size` bytes.
    init(_ messages: Int, of size: Int) {
        self.init(messages: UInt64(messages), bytes: UInt64(messages) * UInt64(size))
    }
}

extension BenchCount {
    /// Creates the count of `messages` messages of `size` bytes. A negative time counts as zero.
    init(_ messages: Int, of size: Int, in time: Moment.Span) {
        self.init(amount: BenchAmount(messages, of: size), nanoseconds: UInt64(max(time.nanoseconds, 0)))
    }
}

/// How far a run has come at one end, counted from its beginning, including the warm-up.
struct BenchProgress: Hashable, Sendable {
    /// The time since the run began at that end.
    var microseconds: UInt64
    var sent: BenchAmount
    var received: BenchAmount
}
