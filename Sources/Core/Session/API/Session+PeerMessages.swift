extension Session {
    package func separateMessages(of peer: PeerID) -> MessageSequence? {
        loop.checkIsolated()
        return driver.separateMessages(of: peer)
    }
}

extension SessionDriver {
    func separateMessages(of peer: PeerID) -> MessageSequence? {
        guard let conversation = machine.peers[peer]?.conversation else { return nil }
        if let inbox = conversation.inbox { return MessageSequence(inbox: inbox) }
        let own = makeInbox()
        conversation.inbox = own
        inbox.moveMessages(of: conversation.port, to: own)
        return MessageSequence(inbox: own)
    }
}

extension Peer {
    /// The messages of this peer alone, for a program that talks with each peer in a task of its own. From the call on
    /// they are here, and not in ``Session/messages``; so are those that the session has and nobody has read. The
    /// sequence ends with the conversation. Each call for one conversation returns the same messages, for one reader.
    ///
    /// Fails if the peer is not connected. The call waits for nobody, so cancelling its task changes nothing.
    public nonisolated(nonsending) func messages() async throws(NighError) -> MessageSequence {
        let id = id
        let messages: MessageSequence? = try await outcome(.receiving, cancelledBy: { _ in }) {
            driver, completion in
            completion(.success(driver.separateMessages(of: id)))
        }
        guard let messages else { throw NighError(.receiving, .notConnected, peer: label) }
        return messages
    }
}
