/// Settings for a session.
public struct SessionConfiguration: Sendable {
    /// The service that the session offers and looks for.
    public var service: ServiceName
    /// The display name that people see on other devices.
    public var name: DisplayName
    /// Whether the session advertises, browses, or both.
    public var role: SessionRole
    /// The discovery info that the session advertises at first; see `Session.update`.
    public var info: DiscoveryInfo
    /// Which peers the session talks to, and how it verifies them.
    public var security = SessionSecurity.encrypted
    /// Whether others may ask to be paired, at first; see `Session.startAcceptingPairing`.
    public var acceptsPairing = false
    /// Whether guests without encryption may connect, over a transport that has guests, such as `web`. Everybody on
    /// their network can read and change what passes between them and this session. Peers stay as ``security`` says.
    public var admitsUnencryptedGuests = false
    /// The limits of the session.
    public var limits: SessionLimits
    /// The timeouts and intervals of the session.
    public var timings: SessionTimings
    /// Whether unreliable messages may travel as datagrams, which nothing delays, where the transport and the peer
    /// support that. Otherwise they travel within the link; see [the guide](docs/guides/sending.md).
    public var datagrams = true
    /// Whether the session checks that each transport keeps its contract (see ``CheckedTransport``). A transport that
    /// breaks a rule is cut off and reported as down, and the report names the rule. On in debug builds. Off in other
    /// builds, where it then costs nothing.
    public var checksTransports = Self.checksTransportsByDefault
    /// The seed for all random decisions of the session, including its incarnation; nil draws a new one each time. Only
    /// tests set it, because two runs with one seed look like the same run to their peers.
    public var seed: UInt64?

    #if DEBUG
        private static let checksTransportsByDefault = true
    #else
        private static let checksTransportsByDefault = false
    #endif

    /// The layers of the session, such as files, groups, or a recorder of its links; see ``SessionLayer``. The session
    /// keeps strong references to them.
    public var layers: [any SessionLayer] = []

    /// Creates the settings for a session of `service` called `name`, with defaults for the rest.
    public init(
        service: ServiceName, name: DisplayName, role: SessionRole = .peer, info: DiscoveryInfo = .none
    ) {
        self.service = service
        self.name = name
        self.role = role
        self.info = info
        limits = SessionLimits()
        timings = SessionTimings()
    }
}
