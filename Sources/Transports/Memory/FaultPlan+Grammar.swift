import NighCore

// The text form of a plan: its keys, the kind of value that each takes, and how values are parsed.

extension FaultPlan {
    enum Kind {
        case time
        case bytes
        case rate
        case odds
        case packets
        case direction
        case number

        var advice: String {
            switch self {
            case .time: "write a time such as 200ms, 5s or 2m"
            case .bytes: "write a number of bytes such as 1500, 64k or 2m, at least 1"
            case .rate:
                "write bytes a second such as 1500 or 64k, or bits as in 64kbit or 1mbit, at least 1 byte"
            case .odds: "write odds such as 1/100, 5% or 0.1%, or all"
            case .packets: "write a number of packets such as 8, at least 1"
            case .direction: "write out, in or both"
            case .number: "write a whole number"
            }
        }
    }

    enum Key: String, CaseIterable {
        case delay, jitter, rate, split, flip, loss
        case lossBurst = "loss-burst"
        case duplicate, reorder, mtu, rebind
        case stallAfter = "stall-after"
        case stallFor = "stall-for"
        case vanishAfter = "vanish-after"
        case cut
        case cutAfter = "cut-after"
        case cutAfterBytes = "cut-after-bytes"
        case direction, refuse, hang
        case dialDelay = "dial-delay"
        case seed

        var kind: Kind {
            switch self {
            case .delay, .jitter, .rebind, .stallAfter, .stallFor, .vanishAfter, .cutAfter, .dialDelay: .time
            case .split, .mtu, .cutAfterBytes: .bytes
            case .rate: .rate
            case .flip, .loss, .duplicate, .reorder, .cut, .refuse, .hang: .odds
            case .lossBurst: .packets
            case .direction: .direction
            case .seed: .number
            }
        }
    }

    /// Sets the value of `key`. Returns false if `text` is not of the kind that `key` takes.
    mutating func set(_ key: Key, to text: String) -> Bool {
        switch key.kind {
        case .time:
            guard let time = Self.time(text) else { return false }
            switch key {
            case .delay: delay = time
            case .jitter: jitter = time
            case .rebind:
                guard time > .zero else { return false }
                rebind = time
            case .stallAfter: stallAfter = time
            case .stallFor: stallFor = time
            case .vanishAfter: vanishAfter = time
            case .cutAfter: cutAfter = time
            default: dialDelay = time
            }
        case .bytes:
            guard let bytes = Self.bytes(text) else { return false }
            switch key {
            case .split: splitLimit = bytes
            case .mtu: packetLimit = bytes
            default: cutAfterBytes = bytes
            }
        case .rate:
            guard let bytes = Self.rate(text) else { return false }
            bytesPerSecond = bytes
        case .odds:
            guard let odds = Self.odds(text) else { return false }
            switch key {
            case .flip: flip = odds
            case .loss: loss = odds
            case .duplicate: duplicate = odds
            case .reorder: reorder = odds
            case .cut: cut = odds
            case .refuse: refuse = odds
            default: hang = odds
            }
        case .packets:
            guard let count = UInt16(text), count > 0 else { return false }
            lossBurst = Int(count)
        case .direction:
            guard let direction = Direction(rawValue: text) else { return false }
            self.direction = direction
        case .number:
            guard let seed = UInt64(text) else { return false }
            self.seed = seed
        }
        return true
    }

    func text(of key: Key) -> String? {
        switch key {
        case .delay: Self.text(delay == .zero ? nil : delay)
        case .jitter: Self.text(jitter == .zero ? nil : jitter)
        case .rate: bytesPerSecond.map { "\($0)" }
        case .split: splitLimit.map { "\($0)" }
        case .flip: flip?.description
        case .loss: loss?.description
        case .lossBurst: lossBurst.map { "\($0)" }
        case .duplicate: duplicate?.description
        case .reorder: reorder?.description
        case .mtu: packetLimit.map { "\($0)" }
        case .rebind: Self.text(rebind)
        case .stallAfter: Self.text(stallAfter)
        case .stallFor: Self.text(stallFor)
        case .vanishAfter: Self.text(vanishAfter)
        case .cut: cut?.description
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

    /// Parses bytes a second. Bits are rounded down to whole bytes.
    private static func rate(_ text: String) -> Int? {
        let digits = text.prefix { ("0"..."9").contains($0) }
        let bits: [Substring: Int] = ["bit": 1, "kbit": 1_000, "mbit": 1_000_000]
        guard let factor = bits[text.dropFirst(digits.count)] else { return bytes(text) }
        guard let count = Int(digits) else { return nil }
        let (product, overflow) = count.multipliedReportingOverflow(by: factor)
        return overflow || product < 8 ? nil : product / 8
    }

    /// Parses a percentage with up to six decimals, as odds.
    private static func percentage(_ text: Substring) -> Odds? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard let whole = parts.first, !whole.isEmpty, parts.count <= 2 else { return nil }
        let fraction = parts.count == 2 ? parts[1] : ""
        guard parts.count == 1 || !fraction.isEmpty, fraction.count <= 6,
            (whole + fraction).allSatisfy({ ("0"..."9").contains($0) }), let hits = Int(whole + fraction)
        else { return nil }
        let outOf = fraction.reduce(100) { scale, _ in scale * 10 }
        return hits > 0 && hits <= outOf ? Odds(hits, outOf: outOf).reduced : nil
    }

    private static func odds(_ text: String) -> Odds? {
        if text == "all" { return .all }
        if text.last == "%" { return percentage(text.dropLast()) }
        let halves = text.split(separator: "/", omittingEmptySubsequences: false)
        guard halves.count == 2, let hits = Int(halves[0]), let outOf = Int(halves[1]), hits > 0,
            outOf >= hits
        else { return nil }
        return Odds(hits, outOf: outOf)
    }
}

extension FaultPlan.Key {
    /// The form of the key's value, and the key's effect, for people.
    fileprivate var guide: (value: String, meaning: String) {
        switch self {
        case .delay: ("TIME", "every byte takes this much longer, each way")
        case .jitter: ("TIME", "and up to this much more, drawn for each piece")
        case .rate: ("RATE", "at most this much passes, each way, packets included")
        case .split: ("BYTES", "bytes are cut into pieces of a random size up to this")
        case .flip: ("ODDS", "this share of the bytes has a wrong bit")
        case .loss: ("ODDS", "this share of the packets is lost")
        case .lossBurst: ("PACKETS", "this many are lost in a row, on average")
        case .duplicate: ("ODDS", "this share of the packets comes twice")
        case .reorder: ("ODDS", "this share of the packets is overtaken by others")
        case .mtu: ("BYTES", "longer packets than this are lost")
        case .rebind: ("TIME", "packets come from another address each time this is over")
        case .stallAfter: ("TIME", "from this age on, a connection's bytes are held back")
        case .stallFor: ("TIME", "releases held bytes after this time; by default never")
        case .vanishAfter: ("TIME", "from this age on, a connection's bytes vanish")
        case .cut: ("ODDS", "each second, a connection breaks with these odds")
        case .cutAfter: ("TIME", "a connection breaks at this age")
        case .cutAfterBytes: ("BYTES", "a connection breaks after this many bytes one way")
        case .direction: ("out|in|both", "the bytes that all of this applies to; by default both")
        case .refuse: ("ODDS", "this share of the attempts to connect is refused")
        case .hang: ("ODDS", "this share of the attempts to connect gets no answer")
        case .dialDelay: ("TIME", "connecting takes this much longer")
        case .seed: ("NUMBER", "decides everything random; 1 by default")
        }
    }
}

extension FaultPlan {
    /// All keys, each with the form of its value and its effect, for a program's help.
    public static var guide: [(key: String, value: String, meaning: String)] {
        Key.allCases.map { ($0.rawValue, $0.guide.value, $0.guide.meaning) }
    }
}

extension FaultPlan.Odds {
    /// The odds in the smallest numbers.
    fileprivate var reduced: Self {
        var (divisor, rest) = (hits, outOf)
        while rest > 0 { (divisor, rest) = (rest, divisor % rest) }
        return Self(hits / divisor, outOf: outOf / divisor)
    }
}
