/// What went wrong: at which stage, by which cause, with which peer, over which transport, and what helps.
///
/// Prints as one sentence, "connecting to Puma over bluetooth: the adapter is powered off; run `bluetoothctl power
/// on`". Every failure this package reports is one of these, also those of transports.
public struct NighError: Error, Hashable, Sendable {
    /// What was being done.
    public var stage: Stage
    /// Why it failed.
    public var cause: Cause
    /// Who it concerned, as a person knows it: a name, a short PeerID or an address.
    public var peer: String?
    /// The scheme of the transport it happened on.
    public var transport: String?
    /// What the person in front of it can do.
    public var advice: String?
    /// The single failures, where several ways were tried.
    public var attempts: [NighError]
    /// How long the peer wants not to be asked again, where it refused and named a time. Without a time, asking again may
    /// never help.
    public var retryAfter: Duration?

    /// An error; everything but stage and cause may be filled in further up.
    public init(
        _ stage: Stage, _ cause: Cause, peer: String? = nil, transport: String? = nil, advice: String? = nil,
        attempts: [NighError] = []
    ) {
        self.stage = stage
        self.cause = cause
        self.peer = peer
        self.transport = transport
        self.advice = advice
        self.attempts = attempts
    }

    /// The same error, about `peer` if it named nobody so far.
    public func about(_ peer: String?) -> NighError {
        var error = self
        error.peer = error.peer ?? peer
        return error
    }

    /// What was being done when it failed.
    public enum Stage: String, Hashable, Sendable, CaseIterable {
        /// Checking what the program asked for.
        case configuring
        /// Loading a transport from a file.
        case loadingPlugin = "loading a plugin"
        /// Reading or making the identity.
        case identity = "loading the identity"
        /// Reading or keeping what is known about peers.
        case trusting = "looking after the trusted peers"
        /// Bringing a session or a transport up.
        case starting
        /// Listening and publishing.
        case advertising
        /// Looking for peers.
        case browsing
        /// Opening a pipe.
        case connecting
        /// The secure channel's handshake.
        case securing = "securing the link"
        /// Exchanging prefaces and hellos.
        case greeting
        /// Waiting for an invitation's answer, or answering one.
        case inviting
        /// Handing over a message.
        case sending
        /// Reading what came.
        case receiving
        /// Moving a conversation to another link.
        case resuming
        /// Being connected with nothing special going on.
        case conversing
        /// Asking for a reply.
        case pinging
        /// Two people making sure that nobody is between their devices.
        case pairing
    }

    /// Why it failed.
    public enum Cause: Hashable, Sendable {
        /// Nobody listens there.
        case refused
        /// There is no way there.
        case unreachable
        /// No answer in time.
        case timedOut
        /// This side took it back.
        case cancelled
        /// The pipe broke or ended without a word.
        case linkLost
        /// The other side broke the pipe off: its program crashed, or something on the way cuts connections.
        case reset
        /// Nothing was heard for the keep-alive time.
        case silent
        /// The person or program over there said no, in these words; and does not want to be asked again before
        /// `retryAfter` has passed, if that is more than zero.
        case declined(String, retryAfter: Duration = .zero)
        /// The other side has all the peers it takes.
        case full
        /// The other side has too many invitations waiting.
        case busy
        /// This many bytes wait for the peer already.
        case bufferFull(limit: Int)
        /// The message has this many bytes, the limit is that many.
        case messageTooLarge(size: Int, limit: Int)
        /// There is no conversation with the peer.
        case notConnected
        /// Nobody of that PeerID is known.
        case unknownPeer
        /// There is no way to the peer that this session's transports know.
        case noRoute
        /// The address leads back to this session.
        case selfDial
        /// Another running program uses this session's identity.
        case sameIdentity
        /// Somebody else answered than was called.
        case wrongPeer(expected: PeerID, found: PeerID)
        /// The peer offers another service.
        case wrongService(String)
        /// The peer is the same, its program was started anew.
        case restarted
        /// The peer ended the conversation.
        case peerLeft
        /// This side ended the conversation.
        case left
        /// The other side knows of no such conversation.
        case unknownConversation
        /// Another link of the same pair took over.
        case superseded
        /// The other side broke the protocol.
        case protocolViolation(String)
        /// The transport broke a rule of its contract, in the way told, and is used no more.
        case contractBroken(ContractRule, String)
        /// The sides share no protocol version.
        case noCommonVersion(ours: ClosedRange<UInt8>, theirs: ClosedRange<UInt8>)
        /// One side wants an encrypted link, the other one without encryption; `theyEncrypt` tells which is which.
        case noCommonSecurity(theyEncrypt: Bool)
        /// The two have not been paired, and one of them talks to paired peers only.
        case notPaired
        /// The other side does not take part in pairing, or not any more.
        case pairingRefused(PairingRefusal)
        /// The link could not be made secure, or is not secure any more.
        case insecure(SecurityFault)
        /// A named limit was reached.
        case limit(String, Int)
        /// A value that cannot be.
        case invalid(String)
        /// Something this build or machine does not have.
        case unavailable(String)
        /// The session is closed, or closing.
        case closed
        /// The operating system said so.
        case system(Int32, String)
        /// Several ways were tried; see `attempts`.
        case allFailed
    }
}

extension NighError: CustomStringConvertible {
    /// The whole error in one sentence, for a person.
    public var description: String {
        var text = stage.rawValue
        if let peer { text += " \(stage.preposition)\(peer)" }
        if let transport { text += " over \(transport)" }
        text += ": \(cause)"
        if !attempts.isEmpty { text += " (" + attempts.map(\.description).joined(separator: "; ") + ")" }
        if let advice { text += "; \(advice)" }
        return text
    }
}

extension NighError.Stage {
    /// What stands between the stage and a peer's name, with the space behind it.
    fileprivate var preposition: String {
        switch self {
        case .connecting, .securing, .sending: "to "
        case .receiving: "from "
        case .resuming, .conversing, .pairing: "with "
        case .greeting, .inviting, .pinging: ""
        case .configuring, .loadingPlugin, .identity, .trusting, .starting, .advertising, .browsing: "for "
        }
    }
}
