/// Something that happens on a network, and how it must end.
struct Scenario: Sendable {
    let name: String
    /// What it shows, in a few words.
    let summary: String
    /// The time after which it fails.
    let limit: Duration
    /// Plays the scenario; throws if something is not as it must be.
    let play: @Sendable (Lab) throws(Failure) -> Void

    init(
        _ name: String, _ summary: String, limit: Duration = .seconds(60),
        _ play: @escaping @Sendable (Lab) throws(Failure) -> Void
    ) {
        self.name = name
        self.summary = summary
        self.limit = limit
        self.play = play
    }

    /// All scenarios. The long ones come first, so that running several at once ends sooner.
    static let all = [
        Ground.all, ByHand.all, Findings.all, Meshes.all, Carriers.all, Daemons.all, Lifelines.all,
        Packets.all, Processes.all, Calling.all, Brokers.all, Partitions.all,
        Addresses.all,
        Discovery.all, Eavesdropping.all, Games.all, GameEnds.all, Files.all, Doctors.all,
    ].flatMap(\.self).sorted { $0.limit > $1.limit }

    /// Always fails. Not part of `all`.
    static let failing = Scenario("failing", "fails on purpose, to test that a failure is detected") {
        lab throws(Failure) in
        try lab.supervisor.run(["false"])
    }

    /// Ends while many things still run. Not part of `all`.
    static let standing = Scenario(
        "standing", "two hosts with daemons and browsers, to see them end with the lab"
    ) {
        lab throws(Failure) in
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

// What most scenarios do.
extension Lab {
    /// Waits until two peers have found each other.
    func find(_ one: PeerProcess, _ other: PeerProcess, within limit: Duration = .seconds(10)) throws(Failure)
    {
        try wait(for: "\(one.name) and \(other.name) to find each other", within: limit) {
            one.finds(other) && other.finds(one)
        }
    }

    /// Waits until two peers are connected, as both see it.
    func connection(
        of one: PeerProcess, _ other: PeerProcess, within limit: Duration = .seconds(10)
    ) throws(Failure) {
        try wait(for: "\(one.name) and \(other.name) to be connected", within: limit) {
            one.isConnected(to: other) && other.isConnected(to: one)
        }
    }

    /// Lets two peers find each other, connects them, and lets them exchange messages.
    func meet(
        _ one: PeerProcess, _ other: PeerProcess, findingWithin limit: Duration = .seconds(10)
    ) throws(Failure) {
        try find(one, other, within: limit)
        one.invite(other)
        try connection(of: one, other, within: limit)
        try exchangeMessages(one, other)
    }

    /// Makes both send `count` more messages to each other, and waits until each has received everything ever sent to
    /// it.
    func exchangeMessages(_ one: PeerProcess, _ other: PeerProcess, count: Int = 20) throws(Failure) {
        let before = (one.sent(to: other).count, other.sent(to: one).count)
        one.send(count, to: other)
        other.send(count, to: one)
        try wait(for: "\(count) messages from \(one.name) and \(other.name) each") {
            one.sent(to: other).count == before.0 + count && other.sent(to: one).count == before.1 + count
        }
        try delivery(one, other)
    }

    /// Waits until each has received everything that the other's session accepted, in order and nothing else.
    func delivery(_ one: PeerProcess, _ other: PeerProcess, within limit: Duration = .seconds(10))
        throws(Failure)
    {
        try wait(for: "everything between \(one.name) and \(other.name) to arrive", within: limit) {
            one.hasDelivered(to: other) && other.hasDelivered(to: one)
        }
        let counts = (one.sent(to: other).count, other.sent(to: one).count)
        journal.note("lab", "arrived: \(counts.0) there, \(counts.1) back")
    }

    /// Makes both send a message every 20 ms until `stopSending`.
    func sendSteadily(_ one: PeerProcess, _ other: PeerProcess) throws(Failure) {
        one.send(to: other, every: .milliseconds(20))
        other.send(to: one, every: .milliseconds(20))
        try wait(for: "messages to flow both ways") {
            one.received(from: other).count > 10 && other.received(from: one).count > 10
        }
    }

    /// Ends the steady sending, and waits until everything has arrived.
    func stopSending(_ one: PeerProcess, _ other: PeerProcess) throws(Failure) {
        one.stopSending()
        other.stopSending()
        // A message that was being sent at that moment is either accepted and reported, or neither. The pong to a ping
        // behind it shows that this is decided.
        let before = (one.view(of: other).pongs, other.view(of: one).pongs)
        one.ping(other)
        other.ping(one)
        try wait(for: "the last message to be sent") {
            one.view(of: other).pongs > before.0 && other.view(of: one).pongs > before.1
        }
        try delivery(one, other)
    }
}
