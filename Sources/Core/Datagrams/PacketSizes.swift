/// Finds the longest packets that a path carries: upwards from those that every path must carry, by probes of lengths that networks have.
struct PacketSizes {
    /// A probe to send.
    struct Probe: Equatable {
        let length: Int
        let token: UInt64
    }

    private static let lengths = [1_392, 1_452, 1_472, 4_052, 8_952]
    private static let pause = Moment.Span.milliseconds(250)
    private static let mostTries = 3

    /// The length of the longest packet that was answered.
    private(set) var longest = DatagramPacket.leastLongest
    /// The length beyond which packets do not pass, or beyond which one side takes none.
    private var most = DatagramPacket.leastLongest
    private var probe: Probe?
    private var tries = 0
    /// Whether the search has begun, or ended.
    private(set) var hasBegun = false
    /// When `timeArrived` must be called next.
    private(set) var deadline = Moment.never

    /// Sets the length of the longest packet that both sides take.
    mutating func limit(to length: Int) { most = length }

    /// Begins the search, if it has not begun. Returns a probe to send; nil if there is nothing to find.
    mutating func begin(token: UInt64, now: Moment) -> Probe? {
        hasBegun = true
        return next(token: token, now: now)
    }

    private mutating func next(token: UInt64, now: Moment) -> Probe? {
        probe = nil
        deadline = .never
        guard let length = Self.lengths.first(where: { $0 > longest && $0 <= most }) else { return nil }
        probe = Probe(length: length, token: token)
        tries = 1
        deadline = now + Self.pause
        return probe
    }

    /// Returns whether an answer is that to the probe under way. If so, its length is in use from now on.
    mutating func isAnswered(by token: UInt64) -> Bool {
        guard let probe, probe.token == token else { return false }
        longest = probe.length
        return true
    }

    /// Goes on after an answer. Returns the next probe to send.
    mutating func proceed(token: UInt64, now: Moment) -> Probe? { next(token: token, now: now) }

    /// Returns the probe under way, to be sent again; nil if its length does not pass.
    mutating func timeArrived(now: Moment) -> Probe? {
        guard let probe, tries < Self.mostTries else {
            most = longest
            self.probe = nil
            deadline = .never
            return nil
        }
        tries += 1
        deadline = now + Self.pause
        return probe
    }

    /// Goes back to packets of the length that every path must carry.
    mutating func shrink() {
        longest = DatagramPacket.leastLongest
        hasBegun = false
    }

    /// Gives up the search, until it is begun again.
    mutating func cancel() {
        hasBegun = false
        probe = nil
        deadline = .never
    }
}
