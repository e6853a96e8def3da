import NighCore

/// What a ``FaultyTransport`` does to the bytes and dials that pass it, decided by a seed: the same plan and the same
/// calls give the same faults.
///
/// Made in code, or read from what a person writes, such as `delay=200ms,jitter=50ms,rate=64k,cut-after=5s,seed=7`:
///
/// | key | value | what it does |
/// | --- | --- | --- |
/// | `delay` | time | every byte takes this much longer |
/// | `jitter` | time | and up to this much more, drawn for each piece; order stays |
/// | `rate` | bytes a second | no more than these pass |
/// | `split` | bytes | cut into pieces of a random size up to this |
/// | `flip` | odds | a bit is wrong in so many bytes |
/// | `stall-after` | time | from this age of a pipe on, bytes are held; nothing is lost |
/// | `stall-for` | time | and let go after so long; for ever when left out |
/// | `vanish-after` | time | from this age of a pipe on, bytes vanish without a word |
/// | `cut-after` | time | at this age a pipe breaks |
/// | `cut-after-bytes` | bytes | after so many bytes in one direction a pipe breaks |
/// | `direction` | `out`, `in` or `both` | to which bytes all of this happens; both when left out |
/// | `refuse` | odds | so many dials are refused |
/// | `hang` | odds | so many dials run into their timeout |
/// | `dial-delay` | time | every dial takes this much longer |
/// | `seed` | number | decides all that is random; 1 when left out |
///
/// A time is a number with `us`, `ms`, `s` or `m`; bytes are a number, with `k` or `m` for 1024 or 1024 × 1024 of them;
/// odds are written `1/100`, or `all`.
public struct FaultPlan: Hashable, Sendable {
    /// Which bytes, seen from the transport that is wrapped.
    public enum Direction: String, Hashable, Sendable, CaseIterable {
        /// Those written here.
        case outgoing = "out"
        /// Those that come from the other end.
        case incoming = "in"
        /// All.
        case both

        /// Whether `other`, one way, is among them.
        public func covers(_ other: Direction) -> Bool { self == .both || self == other }
    }

    /// So many out of so many, on average.
    public struct Odds: Hashable, Sendable, CustomStringConvertible {
        /// How many of ``outOf``.
        public let hits: Int
        /// Of how many.
        public let outOf: Int

        /// `hits` out of `outOf`; at least one out of one, at most every one.
        public init(_ hits: Int, outOf: Int) {
            self.outOf = max(outOf, 1)
            self.hits = min(max(hits, 1), self.outOf)
        }

        /// Every one.
        public static let all = Odds(1, outOf: 1)

        /// As it is written in a spec.
        public var description: String { self == .all ? "all" : "\(hits)/\(outOf)" }
    }

    /// Decides all that is random.
    public var seed: UInt64 = 1
    /// To which bytes it happens. Dials are those made here, whatever this says.
    public var direction = Direction.both
    /// How much longer every byte takes.
    public var delay = Duration.zero
    /// The most it takes longer still.
    public var jitter = Duration.zero
    /// The most bytes that pass in a second.
    public var bytesPerSecond: Int?
    /// The largest piece that bytes are cut into.
    public var splitLimit: Int?
    /// In how many bytes a bit is wrong.
    public var flip: Odds?
    /// From which age of a pipe bytes are held.
    public var stallAfter: Duration?
    /// How long they are held then; for ever when nil.
    public var stallFor: Duration?
    /// From which age of a pipe bytes vanish.
    public var vanishAfter: Duration?
    /// At which age a pipe breaks.
    public var cutAfter: Duration?
    /// After how many bytes one way a pipe breaks.
    public var cutAfterBytes: Int?
    /// How many dials are refused.
    public var refuse: Odds?
    /// How many dials nobody answers.
    public var hang: Odds?
    /// How much longer every dial takes.
    public var dialDelay = Duration.zero

    /// No fault at all.
    public static let none = FaultPlan()

    /// A plan without faults, to be filled in.
    public init() {}

    /// Reads `key=value,key=value`; the keys stand above. An empty text is no fault. An unknown key fails, listing those
    /// there are.
    public init(parsing text: String) throws(NighError) {
        var seen: Set<Substring> = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) where !text.isEmpty {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2 else {
                throw Self.error("fault \"\(part)\"", "faults are written key=value, separated by commas")
            }
            guard let key = Key(rawValue: String(pair[0])) else {
                let known = Key.allCases.map(\.rawValue).sorted().joined(separator: ", ")
                throw Self.error("fault \"\(pair[0])\"", "known are: \(known)")
            }
            guard seen.insert(pair[0]).inserted else {
                throw Self.error("fault \"\(pair[0])\", given twice in \"\(text)\"", "write it once")
            }
            guard set(key, to: String(pair[1])) else {
                throw Self.error("value \"\(pair[1])\" of the fault \(key.rawValue)", key.kind.advice)
            }
        }
    }

    private static func error(_ what: String, _ advice: String) -> NighError {
        NighError(.configuring, .invalid(what), advice: advice)
    }
}

extension FaultPlan: CustomStringConvertible {
    /// The plan as it is written in a spec; what is as in ``none`` is left out.
    public var description: String {
        Key.allCases.compactMap { key in text(of: key).map { "\(key.rawValue)=\($0)" } }.joined(
            separator: ",")
    }
}

extension FaultPlan {
    enum Kind {
        case time
        case bytes
        case odds
        case direction
        case number

        var advice: String {
            switch self {
            case .time: "write a time such as 200ms, 5s or 2m"
            case .bytes: "write a number of bytes such as 1500, 64k or 2m, at least 1"
            case .odds: "write odds such as 1/100, or all"
            case .direction: "write out, in or both"
            case .number: "write a whole number"
            }
        }
    }

    enum Key: String, CaseIterable {
        case delay, jitter, rate, split, flip
        case stallAfter = "stall-after"
        case stallFor = "stall-for"
        case vanishAfter = "vanish-after"
        case cutAfter = "cut-after"
        case cutAfterBytes = "cut-after-bytes"
        case direction, refuse, hang
        case dialDelay = "dial-delay"
        case seed

        var kind: Kind {
            switch self {
            case .delay, .jitter, .stallAfter, .stallFor, .vanishAfter, .cutAfter, .dialDelay: .time
            case .rate, .split, .cutAfterBytes: .bytes
            case .flip, .refuse, .hang: .odds
            case .direction: .direction
            case .seed: .number
            }
        }
    }

    /// False when `text` is not of the kind that `key` takes.
    private mutating func set(_ key: Key, to text: String) -> Bool {
        switch key.kind {
        case .time:
            guard let time = Self.time(text) else { return false }
            switch key {
            case .delay: delay = time
            case .jitter: jitter = time
            case .stallAfter: stallAfter = time
            case .stallFor: stallFor = time
            case .vanishAfter: vanishAfter = time
            case .cutAfter: cutAfter = time
            default: dialDelay = time
            }
        case .bytes:
            guard let bytes = Self.bytes(text) else { return false }
            switch key {
            case .rate: bytesPerSecond = bytes
            case .split: splitLimit = bytes
            default: cutAfterBytes = bytes
            }
        case .odds:
            guard let odds = Self.odds(text) else { return false }
            switch key {
            case .flip: flip = odds
            case .refuse: refuse = odds
            default: hang = odds
            }
        case .direction:
            guard let direction = Direction(rawValue: text) else { return false }
            self.direction = direction
        case .number:
            guard let seed = UInt64(text) else { return false }
            self.seed = seed
        }
        return true
    }

    private func text(of key: Key) -> String? {
        switch key {
        case .delay: Self.text(delay == .zero ? nil : delay)
        case .jitter: Self.text(jitter == .zero ? nil : jitter)
        case .rate: bytesPerSecond.map { "\($0)" }
        case .split: splitLimit.map { "\($0)" }
        case .flip: flip?.description
        case .stallAfter: Self.text(stallAfter)
        case .stallFor: Self.text(stallFor)
        case .vanishAfter: Self.text(vanishAfter)
        case .cutAfter: Self.text(cutAfter)
        case .cutAfterBytes: cutAfterBytes.map { "\($0)" }
        case .direction: direction == .both ? nil : direction.rawValue
        case .refuse: refuse?.description
        case .hang: hang?.description
        case .dialDelay: Self.text(dialDelay == .zero ? nil : dialDelay)
        case .seed: seed == 1 ? nil : "\(seed)"
        }
    }

    private static let timeUnits: [(name: String, microseconds: Int64)] = [
        ("us", 1), ("ms", 1_000), ("s", 1_000_000), ("m", 60_000_000),
    ]

    private static func time(_ text: String) -> Duration? {
        let digits = text.prefix { ("0"..."9").contains($0) }
        guard let count = Int64(digits),
            let unit = timeUnits.first(where: { $0.name == text.dropFirst(digits.count) })
        else { return nil }
        let (microseconds, overflow) = count.multipliedReportingOverflow(by: unit.microseconds)
        return overflow ? nil : .microseconds(microseconds)
    }

    private static func text(_ time: Duration?) -> String? {
        guard let time else { return nil }
        let microseconds = Moment.Span(time).nanoseconds / 1_000
        let unit = timeUnits.last { microseconds % $0.microseconds == 0 } ?? timeUnits[0]
        return "\(microseconds / unit.microseconds)\(unit.name)"
    }

    private static func bytes(_ text: String) -> Int? {
        let digits = text.prefix { ("0"..."9").contains($0) }
        let factors: [Substring: Int] = ["": 1, "k": 1024, "m": 1024 * 1024]
        guard let count = Int(digits), let factor = factors[text.dropFirst(digits.count)] else { return nil }
        let (bytes, overflow) = count.multipliedReportingOverflow(by: factor)
        return overflow || bytes < 1 ? nil : bytes
    }

    private static func odds(_ text: String) -> Odds? {
        if text == "all" { return .all }
        let halves = text.split(separator: "/", omittingEmptySubsequences: false)
        guard halves.count == 2, let hits = Int(halves[0]), let outOf = Int(halves[1]), hits > 0,
            outOf >= hits
        else { return nil }
        return Odds(hits, outOf: outOf)
    }
}
