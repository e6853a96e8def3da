/// What a session is to be.
public struct SessionConfiguration: Sendable {
    /// What it offers and looks for.
    public var service: ServiceName
    /// What it is called on other people's screens.
    public var name: DisplayName
    /// Whether it advertises, browses, or both.
    public var role: SessionRole
    /// What it advertises about itself at first; see `Session.update`.
    public var info: DiscoveryInfo
    /// Whom it talks to, and how it makes sure of that.
    public var security = SessionSecurity.encrypted
    /// Whether others may ask to be paired, at first; see `Session.setAcceptingPairing`.
    public var acceptsPairing = false
    /// Its bounds.
    public var limits: SessionLimits
    /// Its spans of time.
    public var timings: SessionTimings
    /// Whether each transport is held to its contract while the session uses it (see ``CheckedTransport``): one that breaks a rule
    /// is cut off and told to be down, and the rule is named. On in debug builds, off in others, where it costs nothing then.
    public var checksTransports = Self.checksTransportsByDefault
    /// Decides everything that is random in the session, including its incarnation; nil draws it anew each time. Only tests set it:
    /// two runs with one seed would look like one and the same run to their peers.
    public var seed: UInt64?

    #if DEBUG
        private static let checksTransportsByDefault = true
    #else
        private static let checksTransportsByDefault = false
    #endif

    /// Sees every byte of every link in the clear, for tracing; costs nothing where there is none. The session holds it.
    public var observer: (any LinkObserver)?

    /// A session of `service` called `name`, with defaults for the rest.
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
