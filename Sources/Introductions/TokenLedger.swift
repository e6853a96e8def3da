import NighCore

/// The tokens of one conversation, in both directions: for guests of the peer, and for guests of this session.
struct TokenLedger {
    /// The random number of this session for the conversation. The peer's tokens are valid with this number only.
    let nonce: UInt64
    private var made: UInt64 = 0
    private var used = ReplayWindow()

    /// Begins with no token in either direction.
    init(nonce: UInt64) { self.nonce = nonce }

    /// Makes a token that introduces a guest to the peer.
    ///
    /// - Parameter nonce: the peer's number for the conversation.
    mutating func make(
        by introducer: Identity, for guest: PeerID, to host: PeerID, nonce: UInt64
    ) -> IntroductionToken {
        made += 1
        return IntroductionToken(by: introducer, guest: guest, host: host, nonce: nonce, number: made)
    }

    /// Returns why a token of the peer does not introduce a guest to this session; nil if it does.
    func refusal(of token: IntroductionToken, for guest: PeerID, to host: PeerID) -> String? {
        guard token.nonce == nonce, token.introduces(guest, to: host) else {
            return "the introduction is not genuine"
        }
        return used.admits(token.number) ? nil : "the introduction was used before"
    }

    /// Notes that a token of the peer was used.
    mutating func noteUse(of token: IntroductionToken) { used.note(token.number) }
}
