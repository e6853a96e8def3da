import NighCore

extension SessionCore {
    /// The message after another one.
    enum Following {
        case none
        /// A message for the same session, from the same peer's session.
        case same(NighCore.Message)
        case other(NighCore.Message)
    }

    /// Passes a message to the delegate, and those that follow for a while. Returns when the delegate has returned from
    /// all of them, with the message that was taken and is for somebody else, or for later.
    func received(
        _ message: NighCore.Message, from id: PeerID, session: UInt64, following: () -> Following
    ) -> NighCore.Message? {
        // A message that the peer sends right after connecting may arrive before the control queue has noted the
        // connection.
        guard let member = member(id) ?? Control.sync({ member(id) }), member.sessions.to == session else {
            return nil
        }
        return queue.sync {
            // The delegate may have ended all this.
            guard self.member(id) === member else { return nil }
            let version = version.load(ordering: .acquiring)
            guard let owner, let delegate = owner.delegate else { return nil }
            // Something else gets its turn with each tick of this clock, which is many times as fast to read as an
            // exact one.
            let start = Self.ticks
            var message = message
            while true {
                delegate.session(owner, didReceive: Self.data(of: message.payload), fromPeer: member.peerID)
                switch following() {
                case .none: return nil
                case .other(let next): return next
                case .same(let next):
                    // The delegate may have ended all this.
                    guard self.version.load(ordering: .acquiring) == version, Self.ticks == start else {
                        return next
                    }
                    message = next
                }
            }
        }
    }

    /// A time that changes every 1 to 10 ms, as the kernel is configured.
    private static var ticks: Int {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
        return time.tv_sec &* 1_000_000_000 &+ time.tv_nsec
    }

    /// Messages from this size on are passed on without another copy. They keep the memory that they came in.
    private static let sharedCount = 16 << 10

    private static func data(of payload: ByteSlice) -> Data {
        let header = WireMessage.dataHeaderCount
        return payload.withUnsafeBytes { bytes in
            let content = UnsafeRawBufferPointer(rebasing: bytes[header...])
            guard content.count >= sharedCount, let start = content.baseAddress else { return Data(content) }
            // Nobody else reads or writes these bytes, so it does no harm if the program changes its data in place.
            return Data(
                bytesNoCopy: UnsafeMutableRawPointer(mutating: start), count: content.count,
                deallocator: .custom { _, _ in withExtendedLifetime(payload) {} })
        }
    }
}
