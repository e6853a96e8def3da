import Testing

@testable import NighCore

/// Two ends of a conversation, joined by a wire that tests can cut anywhere. Without link machines or sessions.
final class ConversationPair {
    final class End {
        let conversation: Conversation
        var pool = LaneChunks(smallSize: 4_096, largeSize: 4_096, keepAtMost: 8)
        var header = ControlWriter()
        var decoder: FrameDecoder
        /// The bytes that were gathered and not yet read at the other end.
        var wire = ByteQueue()
        var received: [Lane: [[UInt8]]] = [.main: [], .bulk: []]
        /// The lanes and lengths of the received messages, in the order of arrival.
        var order: [(lane: Lane, count: Int)] = []
        let limits: SessionLimits

        init(_ limits: SessionLimits, peer: Hello) {
            self.limits = limits
            let port = PeerPort(peer: peer.peer, limits: limits, peerHello: peer)
            conversation = Conversation(
                id: 1, hello: Frames.hello(), peer: peer, identity: peer.peer, port: port, unread: 0,
                limits: limits,
                timings: SessionTimings())
            decoder = FrameDecoder(maximumPayload: limits.frame)
        }

        func send(_ bytes: [UInt8], on lane: Lane = .main) throws {
            try conversation.port.admit(bytes.count, on: lane)
            bytes.withUnsafeBytes { conversation.append($0, on: lane, pool: &pool) }
        }

        func gather(budget: Int) {
            conversation.gather(into: &wire, budget: budget, header: &header)
        }
    }

    let first: End
    let second: End
    var now = Moment(nanoseconds: 0)

    /// Two ends with a link.
    init(window: Int? = nil, frame: Int? = nil, buffer: Int? = nil) throws {
        var limits = SessionLimits()
        if let window { limits.receiveWindow = window }
        if let frame { limits.frame = frame }
        if let buffer { limits.sendBuffer = buffer }
        first = End(limits, peer: Frames.hello(seed: 2, maximumFrame: limits.frame))
        second = End(limits, peer: Frames.hello(seed: 1, maximumFrame: limits.frame))
        try startLink()
    }

    /// Starts a new link. What was in transit on the old one is lost.
    func startLink() throws {
        for end in [first, second] {
            end.wire.removeAll()
            end.decoder = FrameDecoder(maximumPayload: end.limits.frame)
        }
        let standings = (first.conversation.standingForNewLink(), second.conversation.standingForNewLink())
        try first.conversation.startLink(peerStanding: standings.1, pool: &first.pool)
        try second.conversation.startLink(peerStanding: standings.0, pool: &second.pool)
    }

    /// Delivers at most `count` bytes of what a sender gathered, by default the first end.
    func deliver(from sender: End? = nil, to receiver: End? = nil, atMost count: Int = .max) throws {
        let (sender, receiver) = (sender ?? first, receiver ?? second)
        var left = count
        while left > 0, let slice = sender.wire.popFirst(atMost: left) {
            left -= slice.count
            receiver.decoder.feed(slice)
        }
        while let frame = try receiver.decoder.next() { try receive(frame, at: receiver) }
    }

    /// Has the first end gather what it can, and delivers that.
    func deliver(gathering budget: Int) throws {
        first.gather(budget: budget)
        try deliver()
    }

    func receive(_ frame: FrameDecoder.Frame, at end: End) throws {
        guard let type = FrameType(rawValue: frame.type) else { return }
        let lane: Lane = [.bulkMessage, .bulkBegin, .bulkPiece].contains(type) ? .bulk : .main
        switch type {
        case .message, .bulkMessage:
            try end.conversation.receivedMessage(on: lane, frame, now: now)
            note(Array(frame.bytes), on: lane, at: end)
        case .begin, .bulkBegin:
            let size = frame.bytes.reduce(0) { $0 << 8 | Int($1) }
            try end.conversation.receivedBeginning(on: lane, size: size, nil, now: now)
        case .piece, .bulkPiece:
            let whole = try end.conversation.receivedPiece(on: lane, frame, now: now)
            if let whole { note(whole.message.bytes, on: lane, at: end) }
        default: Issue.record("a frame of type \(type) from a conversation")
        }
    }

    private func note(_ bytes: [UInt8], on lane: Lane, at end: End) {
        end.received[lane]?.append(bytes)
        end.order.append((lane, bytes.count))
    }

    /// Tells a sender the standing of a receiver, by default of the second end.
    func acknowledge(from receiver: End? = nil, to sender: End? = nil) throws {
        let (receiver, sender) = (receiver ?? second, sender ?? first)
        _ = try sender.conversation.apply(receiver.conversation.takeStanding(), pool: &sender.pool)
    }
}
