/// Something that happens on a network, and how it must end.
struct Scenario: Sendable {
    let name: String
    /// Its proof, in a few words.
    let summary: String
    /// The time after which it fails.
    let limit: Duration
    /// Plays the scenario; throws if something is not as it must be.
    let play: @Sendable (Lab) throws -> Void

    init(
        _ name: String, _ summary: String, limit: Duration = .seconds(120),
        _ play: @escaping @Sendable (Lab) throws -> Void
    ) {
        self.name = name
        self.summary = summary
        self.limit = limit
        self.play = play
    }

    /// One scenario without daemons, and the same with a D-Bus and an Avahi daemon on each host.
    static func withoutAndWithDaemons(
        _ name: String, _ summary: String, limit: Duration = .seconds(120),
        _ play: @escaping @Sendable (Lab, _ hasDaemons: Bool) throws -> Void
    ) -> [Scenario] {
        [
            Scenario(name, summary, limit: limit) { try play($0, false) },
            Scenario("\(name)-daemon", "the same with daemons", limit: limit) { try play($0, true) },
        ]
    }

    /// All scenarios. The long ones come first, so that running several at once ends sooner.
    static let all = [
        Ground.all, Finding.all, Discovery.all, Addresses.all, Lifelines.all, Processes.all,
        Crowds.all, Brokers.all, Eavesdropping.all, Games.all, Files.all, Doctors.all,
    ].flatMap(\.self).sorted { $0.limit > $1.limit }

    /// Always fails. Not part of `all`.
    static let failing = Scenario("failing", "fails on purpose, to test that a failure is detected") { lab in
        try lab.supervisor.run(["false"])
    }

    /// Ends while many things still run. Not part of `all`.
    static let standing = Scenario(
        "standing", "two hosts with daemons and browsers, to see them end with the lab"
    ) { lab in
        for name in ["puma", "lynx"] {
            _ = try lab.host(name, daemon: true).start(["avahi-browse", "--all"], mayEnd: true)
        }
    }

    /// The scenarios that can be named on the command line: all, and two that only tests use.
    static let callable = all + [failing, standing]

    /// Returns the scenario with exactly that name, or else all whose names contain it.
    static func matching(_ text: String) -> [Scenario] {
        let exact = callable.filter { $0.name == text }
        return exact.isEmpty ? all.filter { $0.name.contains(text) } : exact
    }
}
