/// Describes a failure: its stage, cause, peer and transport, and what to do about it.
///
/// Prints as one sentence: "connecting to Puma over bluetooth: the adapter is powered off; run `bluetoothctl power
/// on`". Before the colon stands the stage, behind it the cause, then the advice. Every failure that this package
/// reports is a `NighError`, including the failures of transports.
public struct NighError: Error, Hashable, Sendable {
    /// The stage at which it failed.
    public var stage: Stage
    /// Why it failed.
    public var cause: Cause
    /// The peer concerned, as a person knows it: a name, a short PeerID or an address.
    public var peer: String?
    /// The scheme of the transport on which it failed.
    public var transport: String?
    /// How the user can fix it.
    public var advice: String?
    /// The single failures, if several routes were tried.
    public var attempts: [NighError]
    /// How long the peer does not want to be asked again, if it refused and named a time. If it refused without
    /// a time, asking again may never help.
    public var retryAfter: Duration?

    /// Creates an error. Callers further up may fill in everything but stage and cause.
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

    /// Returns the same error with the peer `peer`, if it names no peer yet.
    public func about(_ peer: String?) -> NighError {
        var error = self
        error.peer = error.peer ?? peer
        return error
    }

    /// A stage of the work, at which something may fail.
    #if hasAttribute(nonexhaustive)
        @nonexhaustive
    #endif
    public enum Stage: String, Hashable, Sendable, CaseIterable {
        /// Checking the settings and arguments that the program gave.
        case configuring
        /// Loading a transport plugin from a file.
        case loadingPlugin = "loading a plugin"
        /// Reading or creating the identity.
        case identity = "loading the identity"
        /// Reading or changing the trust store.
        case trusting = "looking after the trusted peers"
        /// Starting a session or a transport.
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
        /// Waiting for the answer to an invitation, or answering one.
        case inviting
        /// Sending a message.
        case sending
        /// Reading received bytes.
        case receiving
        /// Moving a conversation to another link.
        case resuming
        /// Being connected, without another stage in progress.
        case conversing
        /// Waiting for the answer to a ping.
        case pinging
        /// Pairing: two people check that nobody is between their devices.
        case pairing
        /// Asking a peer's program, and waiting for its answer.
        case asking
        /// Calling an actor of a peer's program, and waiting for the result.
        case calling
    }

    /// Why it failed.
    #if hasAttribute(nonexhaustive)
        @nonexhaustive
    #endif
    public enum Cause: Hashable, Sendable {
        /// The device answers, but no program listens at that port or channel.
        case refused
        /// No network of this device leads to the address, or no device answers there.
        case unreachable
        /// No answer came in time.
        case timedOut
        /// This side cancelled it.
        case cancelled
        /// The pipe broke, or ended without a close frame.
        case linkLost
        /// The other side reset the pipe: its program crashed, or something on the way cuts connections.
        case reset
        /// Nothing was received for the keep-alive time.
        case silent
        /// The remote person or program declined, in these words. If `retryAfter` is more than zero, it does not want
        /// to be asked again before that time has passed.
        case declined(String, retryAfter: Duration = .zero)
        /// The other side has as many peers as it accepts.
        case full
        /// Too many invitations wait for an answer at the other side.
        case busy
        /// This many bytes already wait to be sent to the peer.
        case bufferFull(limit: Int)
        /// The message has `size` bytes, and the limit is `limit`.
        case messageTooLarge(size: Int, limit: Int)
        /// A stream was given up by one of the two programs, for this reason.
        case streamCancelled(String)
        /// A file did not arrive, for this reason.
        case file(FileFault)
        /// The peer's program has answered with an error, encoded as these bytes; empty if it cannot be encoded.
        case answeredWithError([UInt8])
        /// The conversation ended before the answer to a question or a call came, for the reason in `attempts`. The
        /// peer's program may have acted on it.
        case answerLost
        /// The peer's program does not know this, or has it switched off.
        case unsupported(String)
        /// There is no conversation with the peer.
        case notConnected
        /// No peer with that PeerID is known.
        case unknownPeer
        /// None of this session's transports knows a route to the peer.
        case noRoute
        /// The address leads back to this session.
        case selfDial
        /// Another running program uses this session's identity.
        case sameIdentity
        /// Another peer answered than the one that was called.
        case wrongPeer(expected: PeerID, found: PeerID)
        /// The peer offers another service.
        case wrongService(String)
        /// The peer's program was restarted; the peer is still the same.
        case restarted
        /// The peer ended the conversation.
        case peerLeft
        /// This side ended the conversation.
        case left
        /// The other side does not know this conversation.
        case unknownConversation
        /// Another link to the same peer took over.
        case superseded
        /// One side broke the protocol, as described.
        case protocolViolation(String)
        /// The transport broke a rule of its contract, as described, and is no longer used.
        case contractBroken(ContractRule, String)
        /// The two sides have no protocol version in common.
        case noCommonVersion(ours: ClosedRange<UInt8>, theirs: ClosedRange<UInt8>)
        /// One side wants an encrypted link, and the other wants one without encryption. `theyEncrypt` says whether the
        /// other side is the one that encrypts.
        case noCommonSecurity(theyEncrypt: Bool)
        /// The two sides are not paired, and one of them accepts only paired peers.
        case notPaired
        /// The two peers were not paired, for this reason.
        case pairingRefused(PairingRefusal)
        /// The link could not be made secure, or is no longer secure.
        case insecure(SecurityFault)
        /// The limit of this name and value was reached.
        case limit(String, Int)
        /// A value is invalid: an option, a name or a file. It is named without an article, to stand behind "invalid":
        /// `port "x"`, or with the reason, `name "x": it is empty`.
        case invalid(String)
        /// This build or this machine lacks something.
        case unavailable(String)
        /// The session is closed, or closing.
        case closed
        /// The operating system reported this error number, with these words.
        case system(Int32, String)
        /// Several routes were tried, and each failed; see `attempts`.
        case allFailed
    }
}

extension NighError: CustomStringConvertible {
    /// The whole error as one sentence, for people.
    public var description: String {
        var text = "\(activity): \(cause)"
        if !attempts.isEmpty { text += " (" + attempts.map(\.description).joined(separator: "; ") + ")" }
        if let advice { text += "; \(advice)" }
        return text
    }
}

extension NighError {
    /// The activity that failed, with its peer and transport.
    private var activity: String {
        switch stage {
        // These concern a transport itself, and not the bytes that travel over it.
        case .configuring: "checking the settings" + (transport.map { " of \($0)" } ?? "") + with("for")
        case .loadingPlugin:
            "loading " + (transport.map { "the plugin of \($0)" } ?? "a plugin") + with("for")
        case .starting: "starting" + (transport.map { " \($0)" } ?? "") + with("for")
        case .identity: "loading the identity" + with("of") + overTransport
        case .trusting:
            (peer.map { "looking for \($0) among the known peers" } ?? "looking after the trusted peers")
                + overTransport
        case .advertising: "advertising" + with("to") + overTransport
        case .browsing: "looking for \(peer ?? "peers")" + overTransport
        case .connecting: "connecting" + with("to") + overTransport
        case .securing: "securing the link" + with("to") + overTransport
        case .greeting: "greeting \(peer ?? "a peer")" + overTransport
        case .inviting: "inviting \(peer ?? "a peer")" + overTransport
        case .sending: "sending" + with("to") + overTransport
        case .receiving: "receiving" + with("from") + overTransport
        case .resuming: "resuming the conversation" + with("with") + overTransport
        case .conversing: "in the conversation" + with("with") + overTransport
        case .pinging: "pinging \(peer ?? "a peer")" + overTransport
        case .pairing: "pairing" + with("with") + overTransport
        case .asking: "asking \(peer ?? "a peer")" + overTransport
        case .calling: "calling " + (peer.map { "an actor of \($0)" } ?? "an actor") + overTransport
        }
    }

    private func with(_ preposition: String) -> String { peer.map { " \(preposition) \($0)" } ?? "" }

    private var overTransport: String { transport.map { " over \($0)" } ?? "" }
}
