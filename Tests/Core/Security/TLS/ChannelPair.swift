import Testing

@testable import NighCore

/// Two channels that exchange their bytes directly, cut as the test wants.
final class ChannelPair {
    static let dialler = Identity.ephemeral(seed: 1)
    static let accepter = Identity.ephemeral(seed: 2)

    let dialling: TLSChannel
    let accepting: TLSChannel
    /// The bytes that one side wrote and the other has not received yet.
    var toAccepting = ByteQueue()
    var toDialling = ByteQueue()
    /// All bytes that each side wrote.
    private(set) var fromDialling: [UInt8] = []
    private(set) var fromAccepting: [UInt8] = []
    /// The bytes that each side could read.
    var readByDialling = ByteQueue()
    var readByAccepting = ByteQueue()
    /// A byte to change on its way, counted from the first byte that its side wrote.
    var tampering: (side: LinkSide, position: Int)?
    /// The maximum number of bytes delivered at once.
    var split: Int

    init(
        _ dialler: TLSContext, _ accepter: TLSContext, expected: PeerID? = nil,
        ticket: ResumptionTicket? = nil, split: Int = .max
    ) {
        dialling = TLSChannel(dialler, side: .dialling, expected: expected, ticket: ticket)
        accepting = TLSChannel(accepter, side: .accepting, expected: nil, ticket: nil)
        self.split = split
    }

    convenience init(split: Int = .max) throws {
        try self.init(TLSContext(Self.dialler), TLSContext(Self.accepter), split: split)
    }

    /// Returns a pair whose handshake is complete.
    static func established() throws -> ChannelPair {
        let pair = try ChannelPair()
        try pair.shakeHands()
        return pair
    }

    func shakeHands() throws(NighError) {
        try dialling.begin(wire: &toAccepting)
        try accepting.begin(wire: &toDialling)
        try pump()
    }

    /// Makes the accepting side send a ticket for the next handshake.
    func sendTicket() throws(NighError) {
        accepting.sendTicket(wire: &toDialling)
        try pump()
    }

    /// Delivers what was written until nothing is left.
    func pump() throws(NighError) {
        while !toAccepting.isEmpty || !toDialling.isEmpty {
            while let bytes = toAccepting.popFirst(atMost: split) {
                let changed = tampered(bytes, .dialling, offset: fromDialling.count)
                fromDialling += bytes.bytes
                try accepting.receive(changed, plain: &readByAccepting, wire: &toDialling)
            }
            while let bytes = toDialling.popFirst(atMost: split) {
                let changed = tampered(bytes, .accepting, offset: fromAccepting.count)
                fromAccepting += bytes.bytes
                try dialling.receive(changed, plain: &readByDialling, wire: &toAccepting)
            }
        }
    }

    private func tampered(_ bytes: ByteSlice, _ side: LinkSide, offset: Int) -> ByteSlice {
        guard let tampering, tampering.side == side, tampering.position >= offset,
            tampering.position < offset + bytes.count
        else { return bytes }
        var changed = bytes.bytes
        changed[tampering.position - offset] ^= 1
        return ByteSlice(changed)
    }

    /// The bytes that the dialling side writes to the pipe for `bytes`.
    func sealed(_ bytes: [UInt8]) throws -> [UInt8] {
        var plain = ByteQueue()
        plain.append(ByteSlice(bytes))
        var wire = ByteQueue()
        try dialling.seal(&plain, into: &wire)
        return wire.bytes
    }

    /// Gives the accepting side bytes of the dialling side's, or of an attacker's.
    func receive(_ bytes: [UInt8]) throws(NighError) {
        try accepting.receive(ByteSlice(bytes), plain: &readByAccepting, wire: &toDialling)
    }

    /// Sends `slices` from one side; returns what the other side read.
    func send(_ slices: [[UInt8]], from side: LinkSide = .dialling) throws -> [UInt8] {
        var plain = ByteQueue()
        for slice in slices { plain.append(ByteSlice(slice)) }
        if side == .dialling {
            try dialling.seal(&plain, into: &toAccepting)
        } else {
            try accepting.seal(&plain, into: &toDialling)
        }
        try #require(plain.isEmpty)
        try pump()
        defer {
            readByAccepting.removeAll()
            readByDialling.removeAll()
        }
        return (side == .dialling ? readByAccepting : readByDialling).bytes
    }

    /// Whether what each side sends arrives at the other.
    func exchange(_ bytes: [UInt8]) throws -> Bool {
        try send([bytes]) == bytes && send([bytes], from: .accepting) == bytes
    }
}
