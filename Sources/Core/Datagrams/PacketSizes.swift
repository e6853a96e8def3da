/// Finds the longest packets that a path carries. It begins with the length that every path must carry, and tries
/// longer ones with probes, one length after another.
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
    /// The length of the longest packets that both sides take.
    private var limit = DatagramPacket.leastLongest
    /// The length beyond which packets do not pass.
    private var most = Int.max
    private var probe: Probe?
    private var tries = 0
    /// Whether the search has begun, or ended.
    private(set) var hasBegun = false
    /// When `timeArrived` must be called next.
    private(set) var deadline = Moment.never

    /// Sets the length of the longest packet that both sides take.
    mutating func limit(to length: Int) { limit = length }

    /// Begins the search. Returns a probe to send; nil if there is nothing to find.
    mutating func begin(token: UInt64, now: Moment) -> Probe? {
        hasBegun = true
        return next(token: token, now: now)
    }

    private mutating func next(token: UInt64, now: Moment) -> Probe? {
        probe = nil
        deadline = .never
        guard let length = Self.lengths.first(where: { $0 > longest && $0 <= min(most, limit) }) else {
            return nil
        }
        probe = Probe(length: length, token: token)
        tries = 1
        deadline = now + Self.pause
        return probe
    }

    /// Whether this is the token of the probe under way.
    func isProbe(_ token: UInt64) -> Bool { probe?.token == token }

    /// Takes the answer to the probe under way, whose length is in use from now on. Returns the next probe to send.
    mutating func answered(token: UInt64, now: Moment) -> Probe? {
        longest = probe?.length ?? longest
        return next(token: token, now: now)
    }

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
        most = .max
        cancel()
    }

    /// Gives up the search, until it is begun again.
    mutating func cancel() {
        hasBegun = false
        probe = nil
        deadline = .never
    }
}
