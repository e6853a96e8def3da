import Arguments
import NighLoop
import NighMemory
import SessionArguments

/// The options of every command with a session, from which the session is made.
struct SessionOptions: Sendable {
    /// The list of transports for `TransportRegistry.makeAll`; nil means all that reach beyond this program.
    var transports: String?
    /// The plugins that provide more transports.
    var plugins: PluginChoice
    var service: ServiceName
    /// Nil means the user's display name.
    var name: DisplayName?
    /// Nil if the user did not choose one: then it is the user's own identity, unless another program uses it now.
    var identity: IdentityChoice?
    var security: SessionSecurity
    /// The faults to inject into everything that passes; nil for none.
    var faults: FaultPlan?
    /// The file that records what passes on the session's links; nil for no record.
    var record: RecordChoice?
    /// Whether the command reports all events of the session.
    var isTalkative: Bool

    /// The key pair that a session uses.
    enum IdentityChoice: Sendable {
        case file(IdentityFile)
        case ephemeral
        /// A temporary key pair with the user's own trust store: for commands that do not have to prove who they are.
        case anybody
    }

    /// The service that `nigh` sessions offer and look for unless the user names another.
    static let ownService: ServiceName = "nigh"

    static let options = OptionGroup(
        "Session",
        Option(
            "transport", short: "t", .transports,
            "what carries it, with options as in tcp:port=4000,interface=wlan0; all there are without it"),
        PluginChoice.sessionOptions,
        Option(
            "service", short: "s", .serviceName, default: ownService,
            "whom it meets: those of the same service"),
        Option("name", short: "n", .displayName, "what others see it as"),
        Option(
            "identity", .identityFile,
            "the file that says who it is, or ephemeral for somebody new; your own without it"),
        Option(
            "security", .choice(of: SessionSecurity.self), default: .encrypted,
            "encrypted; with paired peers only; or none, for measurements among those who say so"),
        Option(
            "inject", .faults,
            "makes the link worse, as in delay=200ms,rate=64kbit; see `nigh help inject`"),
        RecordChoice.options,
        Option(flag: "verbose", short: "v", "tells on the standard error what the session hears")
    ) {
        transports, plugins, service, name, identity, security, faults, record, isTalkative
        in
        SessionOptions(
            transports: transports, plugins: plugins, service: service,
            name: name,
            identity: identity.map { $0.map(IdentityChoice.file) ?? .ephemeral }, security: security,
            faults: faults, record: record, isTalkative: isTalkative)
    }

    /// Makes the transports. Returns them as they were made, and as a session uses them: each with the faults that were
    /// asked for.
    func makeTransports() throws(Misuse) -> (made: [any Transport], used: [any Transport]) {
        let made = try plugins.makeAll(transports)
        guard let faults else { return (made, made) }
        return (made, made.map { FaultyTransport($0, plan: faults) })
    }
}

extension Notation where Value == FaultPlan {
    /// The faults of a link.
    static var faults: Notation {
        Notation("FAULTS") { text in try FaultPlan(parsing: text) }
    }
}
