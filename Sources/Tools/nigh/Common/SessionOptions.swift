import Arguments
import NighLoop
import NighMemory
import NighRelays
import NighWeb
import SessionArguments

/// The options of every command with a session, from which the session is made.
struct SessionOptions: Sendable {
    /// The list of transports for `TransportRegistry.makeAll`; nil means all that reach beyond this program.
    var transports: String?
    /// Whether guests are let in, over the transport for them.
    var admitsGuests = false
    /// The plugins that provide more transports.
    var plugins: PluginChoice
    var service: ServiceName
    /// Nil means the user's display name.
    var name: DisplayName?
    /// Nil if the user did not choose one: then it is the user's own identity.
    var identity: IdentityChoice?
    var security: SessionSecurity
    /// The peers for which the session carries connections, and which may carry connections to it.
    var relays: RelayPolicy
    /// The peer with which the session keeps a conversation, because it introduces or carries; nil for none.
    var through: PeerChoice?
    /// The faults to inject into everything that passes; nil for none.
    var faults: FaultPlan?
    /// The file that records the frames on the session's links; nil for no record.
    var record: RecordChoice?
    /// Whether the command reports all events of the session.
    var isVerbose: Bool

    /// The key pair that a session uses.
    enum IdentityChoice: Sendable {
        case file(IdentityFile)
        case ephemeral
        /// A delegate of the user's own identity, which leaves its place to others: for commands that only look. If
        /// there is no identity yet, a temporary one with the user's own trust store.
        case delegate
    }

    /// The flag of commands that let guests in.
    static let web = Option(
        flag: "web",
        "also lets in a phone without the program: shows a code that the phone scans, and a page in its browser; not encrypted"
    )

    /// Takes the service that an operand names, if it names one. Fails if `--service` names another.
    mutating func take(_ operand: ServiceName?) throws {
        guard let operand else { return }
        guard service == Self.ownService || service == operand else {
            throw UsageError("SERVICE and --service name two services: leave out one of them")
        }
        service = operand
    }

    /// The service that `nigh` sessions offer and look for unless the user names another.
    static let ownService: ServiceName = "nigh"

    static let options = OptionGroup(
        "Session", isShared: true,
        Option(
            "transport", short: "t", .transports,
            "the transports to use, with options as in tcp:port=4000,interface=wlan0; by default all that reach other programs"
        ),
        PluginChoice.sessionOptions,
        Option(
            "service", short: "s", .serviceName, default: ownService,
            "the service to offer and to look for"),
        Option("name", short: "n", .displayName, "the display name that other peers see"),
        Option(
            "identity", .identityFile,
            "the identity file, or ephemeral for a temporary identity; by default your own"),
        Option(
            "security", .choice(of: SessionSecurity.self), default: .encrypted,
            "encrypted; paired, which is encrypted and with paired peers only; or none, for measurements if all peers use none"
        ),
        Option(
            "relays", .choice(of: RelayPolicy.self), default: .paired,
            "who may carry connections to this session, and have it carry theirs: nobody, paired peers or everyone"
        ),
        Option(
            "through", .peer,
            "also connects to this peer, which may introduce others in a mesh, or carry connections to them (see --relays)"
        ),
        Option(
            "inject", .faults,
            "injects faults into the links, as in delay=200ms,rate=64kbit; see `nigh help inject`"),
        RecordChoice.options,
        Option(flag: "verbose", short: "v", "reports the session's events on the standard error")
    ) {
        transports, plugins, service, name, identity, security, relays, through, faults, record, isVerbose
        in
        SessionOptions(
            transports: transports, plugins: plugins, service: service,
            name: name,
            identity: identity.map { $0.map(IdentityChoice.file) ?? .ephemeral }, security: security,
            relays: relays, through: through, faults: faults, record: record, isVerbose: isVerbose)
    }

    /// Makes the transports. Returns them as they were made, and as a session uses them: each with the faults that were
    /// asked for, except one that has guests.
    func makeTransports() throws(UsageError) -> (made: [any Transport], used: [any Transport]) {
        var made = try plugins.makeAll(transports)
        if admitsGuests, !made.contains(where: \.hasGuests) {
            made += try plugins.makeAll(WebTransport.schemeName)
        }
        guard let faults else { return (made, made) }
        return (made, made.map { $0.hasGuests ? $0 : FaultyTransport($0, plan: faults) })
    }
}

extension Notation where Value == FaultPlan {
    /// The faults of a link.
    static var faults: Notation {
        Notation("FAULTS") { text in try FaultPlan(parsing: text) }
    }
}
