import Arguments
import Nigh
import NighMemory
import SessionArguments

/// What a command's session is made of: the options that every command with a session takes.
struct SessionOptions: Sendable {
    /// As `TransportRegistry.makeAll` reads it; nil for everything that reaches beyond this program.
    var transports: String?
    /// Where else transports come from.
    var plugins: PluginChoice
    var service: ServiceName
    /// Nil for the one this user goes by.
    var name: DisplayName?
    /// Nil where nobody chose; then it is the user's own, where no other program uses that now.
    var identity: IdentityChoice?
    var security: SessionSecurity
    /// What is done to everything that passes; nil for nothing.
    var faults: FaultPlan?
    /// Where what passes on its links is written down; nil for nowhere.
    var record: RecordChoice?
    /// Whether it is told what the session hears.
    var isTalkative: Bool

    /// Which key pair a session has.
    enum IdentityChoice: Sendable {
        case file(IdentityFile)
        case ephemeral
        /// Somebody new, with what this user knows of others: for commands to which nobody proves anything.
        case anybody
    }

    /// What sessions of `nigh` offer and look for, where nobody says otherwise.
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

    /// The transports as they were made, and as a session is to have them: each with the faults that were asked for.
    func makeTransports() throws(Misuse) -> (made: [any Transport], used: [any Transport]) {
        let made = try plugins.makeAll(transports)
        guard let faults else { return (made, made) }
        return (made, made.map { FaultyTransport($0, plan: faults) })
    }
}

extension Notation where Value == FaultPlan {
    /// What is done to a link.
    static var faults: Notation {
        Notation("FAULTS") { text in try FaultPlan(parsing: text) }
    }
}
