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
/// | `rate` | bytes a second, or bits | no more than these pass |
/// | `split` | bytes | cut into pieces of a random size up to this |
/// | `flip` | odds | a bit is wrong in so many bytes |
/// | `stall-after` | time | from this age of a pipe on, bytes are held; nothing is lost |
/// | `stall-for` | time | and let go after so long; for ever when left out |
/// | `vanish-after` | time | from this age of a pipe on, bytes vanish without a word |
/// | `cut` | odds | in each second of its life a pipe breaks with these |
/// | `cut-after` | time | at this age a pipe breaks |
/// | `cut-after-bytes` | bytes | after so many bytes in one direction a pipe breaks |
/// | `direction` | `out`, `in` or `both` | to which bytes all of this happens; both when left out |
/// | `refuse` | odds | so many dials are refused |
/// | `hang` | odds | so many dials run into their timeout |
/// | `dial-delay` | time | every dial takes this much longer |
/// | `seed` | number | decides all that is random; 1 when left out |
///
/// A time is a number with `us`, `ms`, `s` or `m`; bytes are a number, with `k` or `m` for 1024 or 1024 × 1024 of them; a rate may
/// also be bits a second, with `kbit` or `mbit` for 1,000 or 1,000,000 of them; odds are written `1/100`, `5%` or `0.1%`, or `all`.
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
    /// How likely a pipe breaks in each second of its life.
    public var cut: Odds?
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
