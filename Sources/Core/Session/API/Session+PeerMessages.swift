extension Session {
    package func separateMessages(of peer: PeerID) -> MessageSequence? {
        loop.checkIsolated()
        guard let conversation = machine.peers[peer]?.conversation else { return nil }
        let inbox = conversation.inbox ?? driver.makeInbox()
        conversation.inbox = inbox
        return MessageSequence(inbox: inbox)
    }
}
