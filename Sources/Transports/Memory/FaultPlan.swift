import NighCore

/// The faults that a ``FaultyTransport`` applies to the bytes, packets and dials that pass it. A seed decides
/// everything random: the same plan and the same calls give the same faults.
///
/// Made in code, or parsed from text, such as `delay=200ms,jitter=50ms,rate=64k,cut-after=5s,seed=7`:
///
/// | key | value | effect |
/// | --- | --- | --- |
/// | `delay` | time | every byte takes this much longer |
/// | `jitter` | time | each piece takes up to this much more, drawn for each; the order of a pipe's bytes is kept, that of packets is not |
/// | `rate` | bytes a second, or bits | at most this many pass, bytes and packets together; a packet that would wait over 200 ms for its turn is lost |
/// | `split` | bytes | bytes are cut into pieces of a random size up to this |
/// | `flip` | odds | this share of the bytes have a wrong bit |
/// | `loss` | odds | this share of the packets is lost |
/// | `loss-burst` | packets | losses come in bursts of this mean length; their share stays that of `loss` |
/// | `duplicate` | odds | this share of the packets comes twice |
/// | `reorder` | odds | this share of the packets takes 20 to 60 ms more, drawn for each, and so arrives behind later ones |
/// | `mtu` | bytes | packets that are longer than this are lost |
/// | `rebind` | time | the other end's packets come from another address each time this has passed, and the old one is dead |
/// | `stall-after` | time | from this age of a pipe on, bytes are held; nothing is lost |
/// | `stall-for` | time | held bytes are released after this time; by default never |
/// | `vanish-after` | time | from this age of a pipe on, bytes vanish without a report |
/// | `cut` | odds | a pipe breaks with these odds in each second of its life |
/// | `cut-after` | time | a pipe breaks at this age |
/// | `cut-after-bytes` | bytes | a pipe breaks after this many bytes in one direction |
/// | `direction` | `out`, `in` or `both` | the bytes that all of this applies to; by default both |
/// | `refuse` | odds | this share of the dials is refused |
/// | `hang` | odds | this share of the dials runs into its timeout |
/// | `dial-delay` | time | every dial takes this much longer |
/// | `seed` | number | decides everything random; 1 by default |
///
/// A time is a number with `us`, `ms`, `s` or `m`. Bytes are a number, with `k` or `m` for 1024 or 1024 × 1024 of them.
/// A rate may also be bits a second, with `kbit` or `mbit` for 1,000 or 1,000,000 of them. Odds are written `1/100`,
/// `5%` or `0.1%`, or `all`.
public struct FaultPlan: Hashable, Sendable {
    /// A direction of bytes, seen from the transport that is wrapped.
    public enum Direction: String, Hashable, Sendable, CaseIterable {
        /// The bytes written here.
        case outgoing = "out"
        /// The bytes that come from the other end.
        case incoming = "in"
        /// All bytes.
        case both

        /// Returns whether this includes `other`, which is one of the two single directions.
        public func covers(_ other: Direction) -> Bool { self == .both || self == other }
    }

    /// Odds as a fraction: ``hits`` out of ``outOf``, on average.
    public struct Odds: Hashable, Sendable, CustomStringConvertible {
        /// How many of ``outOf`` are affected.
        public let hits: Int
        /// The total that ``hits`` is counted out of.
        public let outOf: Int

        /// Creates odds of `hits` out of `outOf`. A smaller `outOf` than 1 becomes 1; `hits` is brought into the range
        /// from 1 to `outOf`.
        public init(_ hits: Int, outOf: Int) {
            self.outOf = max(outOf, 1)
            self.hits = min(max(hits, 1), self.outOf)
        }

        /// The odds of something that always happens.
        public static let all = Odds(1, outOf: 1)

        /// The odds as a share from 0 to 1.
        var share: Double { Double(hits) / Double(outOf) }

        /// Draws whether something with these odds happens.
        func areHit(using random: inout SeededGenerator) -> Bool {
            Int.random(in: 0..<outOf, using: &random) < hits
        }

        /// The odds as they are written in a plan.
        public var description: String { self == .all ? "all" : "\(hits)/\(outOf)" }
    }

    /// The seed of everything random.
    public var seed: UInt64 = 1
    /// The bytes that the faults apply to. Faults of dials apply to the dials made here, whatever this says.
    public var direction = Direction.both
    /// How much longer every byte takes.
    public var delay = Duration.zero
    /// The most additional delay, drawn for each piece.
    public var jitter = Duration.zero
    /// The most bytes that pass in a second, those of packets included.
    public var bytesPerSecond: Int?
    /// The largest piece that bytes are cut into.
    public var splitLimit: Int?
    /// The share of bytes with a wrong bit.
    public var flip: Odds?
    /// The share of packets that are lost.
    public var loss: Odds?
    /// How many packets in a row are lost, on average; each is lost by itself if nil. Bursts are longer where the share
    /// of ``loss`` cannot be reached otherwise.
    public var lossBurst: Int?
    /// The share of packets that come twice.
    public var duplicate: Odds?
    /// The share of packets that are held back for 20 to 60 ms, so that later ones overtake them.
    public var reorder: Odds?
    /// The length of the longest packet that passes.
    public var packetLimit: Int?
    /// How long the packets of the other end come from one address. Then they come from another one, and packets to the
    /// old one are lost, as when a router forgets which address it gave a device.
    public var rebind: Duration?
    /// The age of a pipe from which on bytes are held.
    public var stallAfter: Duration?
    /// How long bytes are held then; forever if nil.
    public var stallFor: Duration?
    /// The age of a pipe from which on bytes vanish.
    public var vanishAfter: Duration?
    /// How likely a pipe breaks in each second of its life.
    public var cut: Odds?
    /// The age at which a pipe breaks.
    public var cutAfter: Duration?
    /// The number of bytes in one direction after which a pipe breaks.
    public var cutAfterBytes: Int?
    /// The share of dials that are refused.
    public var refuse: Odds?
    /// The share of dials that nobody answers.
    public var hang: Odds?
    /// How much longer every dial takes.
    public var dialDelay = Duration.zero

    /// A plan without faults.
    public static let none = FaultPlan()

    /// Creates a plan without faults, to be filled in.
    public init() {}

    /// Parses `key=value,key=value`, with the keys of the table above. An empty text is a plan without faults. Fails
    /// for an unknown key, with a list of those that exist.
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
    /// The plan in the form that ``init(parsing:)`` reads. Values that are the same in ``none`` are left out.
    public var description: String {
        Key.allCases.compactMap { key in text(of: key).map { "\(key.rawValue)=\($0)" } }.joined(
            separator: ",")
    }
}
