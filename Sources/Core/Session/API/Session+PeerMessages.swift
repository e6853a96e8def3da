extension Session {
    /// Gives the messages of a connected peer a sequence of their own, so that a program which is slow with one peer's
    /// messages holds up nobody else's. Returns nil if there is no conversation with the peer.
    ///
    /// Call it on the loop. Messages that come later are in this sequence, and neither in `messages` nor passed to the
    /// handler that was given to `start`. If the event handler calls it as soon as the peer is reported as connected,
    /// the sequence has every message of the conversation. It ends with the conversation, after everything that came
    /// has been read. A peer that connects again needs another sequence.
    ///
    /// A second call for the same conversation returns the same sequence.
    public func separateMessages(of peer: PeerID) -> MessageSequence? {
        loop.checkIsolated()
        guard let conversation = machine.peers[peer]?.conversation else { return nil }
        let inbox = conversation.inbox ?? driver.makeInbox()
        conversation.inbox = inbox
        return MessageSequence(inbox: inbox)
    }
}
