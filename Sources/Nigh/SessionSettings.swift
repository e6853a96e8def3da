import NighCore
import NighSystem
import NighWeb

/// Settings for a session beyond its service, name and transports. The defaults suit most programs.
public struct SessionSettings: Sendable {
    /// The info that the session advertises about itself: up to 400 bytes of keys and values.
    public var info: [String: String] = [:]
    /// Whether peers can find this session from the start.
    public var advertises = true
    /// Whether this session looks for peers from the start.
    public var browses = true
    /// The way in which sessions are connected: pairs that have invited each other, or all with all.
    public var topology = Topology.pairs
    /// In a mesh: the peers with which the session is connected without a question to its program, because another
    /// member introduces them, or by ``connectsAutomatically``. Others are declined. If the program does not connect
    /// automatically, it is asked about a peer that invites without an introduction, as in other topologies.
    public var meshMembers = MeshAdmission.everyone
    /// The connections that the session relays between peers that cannot reach each other, and those relayed to it.
    public var relays = RelaySettings()
    /// Whether the session connects to every peer from the start; see ``Session/connectsAutomatically``.
    public var connectsAutomatically = false
    /// The key pair that makes this session's PeerID.
    public var identity = SessionIdentity.saved
    /// The peers that the session talks to, and how it verifies them.
    public var security = SessionSecurity.encrypted
    /// Whether peers may ask to be paired from the start.
    public var acceptsPairing = false
    /// Whether guests without encryption may connect: people who open ``Session/inviteGuest()``'s address in a browser.
    /// Everybody on their network can read and change their traffic with this session. The session then needs the
    /// transport `web`, as in `transports: "tcp,web"`.
    public var admitsUnencryptedGuests = false
    /// The page that guests get. Without one they get a page that says that there is none.
    public var page: WebPage?
    /// Which files the session accepts.
    public var files = FileAcceptance.none
    /// Whether ``Peer/sendUnreliably(bytes:replacing:)`` may send datagrams, which nothing delays, where the transport
    /// and the peer can do that. ``Peer/hasDatagrams`` says whether it does.
    public var datagrams = true
    /// Plugin files to load transports from, besides those in the plugin folders. A program can load plugins only if it
    /// is linked to the product `NighShared`.
    public var plugins: [String] = []
    /// Whether a program that reads no ``Session/events`` and has no ``log`` gets a line on its standard error when the
    /// session cannot find peers or be found, for instance because a transport that it named does not work, and no
    /// other line while the problem lasts.
    public var printsProblems = true
    /// Prints such a line.
    package var printProblem: @Sendable (String) -> Void = { StandardError.print($0) }
    /// Whether the session prints its problems itself, because neither a handler nor a log gets them.
    var printsUnreadProblems: Bool { printsProblems && onEvent == nil && log == nil }
    /// Writes a line to the program's own log for each event and each question that was not answered, with a level and
    /// facts by name: `peer`, `peer-name`, `transport`, `cause`, `question`. Called on the session's own thread, which
    /// it must not block.
    public var log: (@Sendable (_ level: LogLevel, _ message: String, _ facts: [String: String]) -> Void)?
    /// The coder of values in messages, questions and answers.
    public var coder: any MessageCoder = JSONCoder()
    /// Layers of the program's own, which ride on the conversations beside those of Nigh.
    public var layers: [any SessionLayer] = []
    /// The session's bounds.
    public var limits = SessionLimits()
    /// The session's time limits.
    public var timings = SessionTimings()
    /// Called with each event, on the session's own thread, which it must not block. ``Session/events`` gets them too.
    public var onEvent: (@Sendable (SessionEvent) -> Void)?
    /// Called with each message, on the session's own thread, which it must not block. The bytes are valid during the
    /// call, and nothing is copied. Messages then do not go to ``Session/messages``.
    public var onMessage: (@Sendable (_ bytes: RawSpan, _ origin: MessageOrigin) -> Void)?
}

/// The source of a session's key pair.
public enum SessionIdentity: Hashable, Sendable {
    /// The user's own identity, so that peers recognize this user. Any number of programs and sessions may use it at
    /// the same time: the first session of a service has its key, and each further one has a key of its own that acts
    /// for the identity.
    case saved
    /// The identity in a file, which is made if it does not exist. Several sessions may use it as they may use the
    /// saved one.
    case file(String)
    /// A new identity that is forgotten with the session, unless ``Session/saveIdentity(to:)`` saves it.
    case temporary

    /// Loads the identity for one session, and the trust store that belongs to it.
    func begin(for service: ServiceName) throws(NighError) -> (IdentityUse, TrustStore) {
        switch self {
        case .temporary: (.alone(.ephemeral()), .ephemeral())
        case .file(let path): (try .begin(IdentityFile(path: path), for: service), try .standard())
        case .saved: (try .begin(IdentityFile(), for: service), try .standard())
        }
    }
}
