import Glibc

/// A running `lab peer` in a scenario. What it has printed is kept as the present state.
final class PeerProcess {
    struct Options {
        var transport = "tcp"
        var role = "peer"
        var service = "lab"
        /// A file in the host's /run. The same file makes the same peer.
        var identity: String?
        var info: [String] = []
        /// Whether it invites every peer it finds.
        var meets = false
        /// Whether it becomes connected to everybody to whom one of its peers is connected.
        var isMesh = false
        /// Whether it carries pipes for others, and lets others carry pipes to it.
        var hasRelays = false
        var isEncrypted = true
        /// Whether it shows the numbers that others ask.
        var showsNumbers = false
        /// How many seconds a conversation without a link waits for another one, if not as long as usual.
        var grace: Int?

        init() {}

        /// Options with a transport's spec.
        static func over(_ transport: String) -> Options {
            var options = Options()
            options.transport = transport
            return options
        }

        /// The same options, with invitations to every peer it finds.
        var meeting: Options {
            var options = self
            options.meets = true
            return options
        }

        /// The same options, with an identity that is kept in `file`.
        func kept(in file: String) -> Options {
            var options = self
            options.identity = file
            return options
        }
    }

    /// What it knows of another peer.
    struct View {
        /// Whether discovery shows the peer now.
        var isFound = false
        var name = ""
        var routes: [String] = []
        var info: [String] = []
        var state = "unavailable"
        /// The reason for the state, if one was reported.
        var cause = ""
        /// Every state so far, with its time and its reason.
        var states: [(state: String, at: Duration, cause: String)] = []
        var isSuspected = false
        var slowestRoundTrip: Duration?
        var pongs = 0
        /// The transports that carry or carried the conversation, in order.
        var transports: [String] = []
        /// Whether unreliable messages travel beside the link, at each change.
        var packets: [Bool] = []
        /// When messages have come.
        var arrivals: [Duration] = []
        /// The values that have come, and when.
        var values: [(number: UInt64, at: Duration)] = []
    }

    let name: String
    unowned let host: Host
    let options: Options
    let label: String
    private(set) var id = ""
    private(set) var run = ""
    private(set) var views: [String: View] = [:]
    private(set) var ledger = Ledger()
    /// The addresses on which it listens, as reported.
    private(set) var listening: [String] = []
    /// The name under which others can find it, once they can.
    private(set) var advertisedName: String?
    /// The last reported condition of each transport: `up`, or `down` and the reason.
    private(set) var conditions: [String: String] = [:]
    /// Failures of discovery or of a transport, as printed.
    private(set) var troubles: [String] = []
    /// Failures of commands.
    private(set) var failures: [String] = []
    private(set) var statistics: [String: Int] = [:]
    /// The numbers that others have asked it.
    private(set) var asked: [UInt64] = []

    private let child: Child
    private var errors: [String] = []

    fileprivate init(_ name: String, _ options: Options, label: String, child: Child, on host: Host) {
        self.name = name
        self.options = options
        self.host = host
        self.child = child
        self.label = label
    }

    convenience init(_ name: String, _ options: Options, on host: Host) throws(Failure) {
        let label = "\(host.name)/\(name)"
        var command = host.launcher + [try Spawning.ownPath(), "peer", "--name", name]
        command += ["--transport", options.transport, "--role", options.role, "--service", options.service]
        if let identity = options.identity { command += ["--identity", "/run/\(identity)"] }
        for pair in options.info { command += ["--info", pair] }
        if options.meets { command.append("--meet") }
        if options.isMesh { command.append("--mesh") }
        if options.hasRelays { command.append("--relays") }
        if !options.isEncrypted { command.append("--unencrypted") }
        if options.showsNumbers { command.append("--numbers") }
        if let grace = options.grace { command += ["--grace", "\(grace)"] }
        let child = try host.lab.supervisor.start(label, command)
        self.init(name, options, label: label, child: child, on: host)
        // A peer that is not ready in time is gone before its process is.
        child.onLine = { [weak self] stream, line in self?.handle(line, from: stream) }
        try host.lab.supervisor.wait("\(label) to be ready", within: .seconds(20)) { !id.isEmpty }
    }

    // MARK: Commands

    /// Writes a line of its command language.
    func sendCommand(_ line: String) {
        host.lab.journal.note(label, "< \(line)")
        child.writeLine(line)
    }

    func invite(_ other: PeerProcess) { sendCommand("invite \(other.id)") }
    func leave(_ other: PeerProcess) { sendCommand("leave \(other.id)") }
    func ping(_ other: PeerProcess) { sendCommand("ping \(other.id)") }

    /// Sends `count` numbered messages with a `pause` after each. Without a count, sends until `stopSending`.
    func send(_ count: Int? = nil, to other: PeerProcess, every pause: Duration = .zero, size: Int = 64) {
        let milliseconds = Int(pause / .milliseconds(1))
        sendCommand("send \(other.id) \(count.map(String.init) ?? "on") \(size) \(milliseconds)")
    }

    /// Sends numbered values unreliably with a `pause` after each, until `stopSending`.
    func show(to other: PeerProcess, every pause: Duration) {
        sendCommand("show \(other.id) \(Int(pause / .milliseconds(1)))")
    }

    /// Asks questions and calls an actor, so many at once, until `stopSending`.
    func ask(_ other: PeerProcess, atOnce count: Int = 32) { sendCommand("ask \(other.id) \(count)") }

    /// Has it count what it did.
    func count() throws(Failure) {
        statistics = [:]
        sendCommand("statistics")
        try host.lab.wait(for: "\(name) to count") { statistics["done"] != nil }
    }

    /// Ends what `send` or `show` began.
    func stopSending() { sendCommand("hush") }

    /// Tells it to quit.
    func quit() {
        child.mayEnd = true
        sendCommand("quit")
    }

    /// Sends it a signal. If the signal ends it, that is expected.
    func signal(_ number: Int32) {
        host.lab.journal.note(label, "gets signal \(number)")
        if [SIGKILL, SIGINT, SIGTERM].contains(number) { child.mayEnd = true }
        child.signal(number)
    }

    // MARK: State

    var isRunning: Bool { !child.isOver }
    var process: pid_t { child.process }
    var ending: Child.Ending? { child.ending }

    func view(of other: PeerProcess) -> View { views[other.id] ?? View() }
    func finds(_ other: PeerProcess) -> Bool { view(of: other).isFound }
    func isConnected(to other: PeerProcess) -> Bool { view(of: other).state == "connected" }

    /// The numbers of the messages that arrived from the other peer's present run.
    func received(from other: PeerProcess) -> [UInt64] {
        ledger.received[.init(peer: other.id, run: other.run)] ?? []
    }

    /// The numbers of the messages that its session accepted for another peer.
    func sent(to other: PeerProcess) -> [UInt64] { ledger.sent[other.id] ?? [] }

    /// Whether another peer has received everything sent to it, in order and nothing else.
    func hasDelivered(to other: PeerProcess) -> Bool { other.received(from: self) == sent(to: other) }

    /// The last time at which it was in `state` towards another peer, not before `moment`.
    func when(_ other: PeerProcess, was state: String, since moment: Duration = .zero) -> Duration? {
        view(of: other).states.last { $0.state == state && $0.at >= moment }?.at
    }

    /// The longest time without a message from another peer since `moment`.
    func longestSilence(of other: PeerProcess, since moment: Duration) -> Duration {
        let moments = [moment] + view(of: other).arrivals.filter { $0 > moment }
        return zip(moments, moments.dropFirst()).map { $1 - $0 }.max() ?? .zero
    }

    /// The port on which it listens.
    func port() throws(Failure) -> Int {
        for address in listening {
            if let text = address.split(separator: ":").last, let port = Int(text) { return port }
        }
        throw Failure("\(label) names no port among \(listening)")
    }

    /// Fails if it received what it must not, broke a rule of states, or ended abnormally.
    func check() throws(Failure) {
        if let fault = ledger.fault { throw Failure("\(label): \(fault)") }
        if case .exited(let status)? = ending, status != 0 {
            throw Failure("\(label) ended with status \(status)")
        }
        if case .killed(let signal)? = ending, ![SIGKILL, SIGTERM].contains(signal) {
            throw Failure("\(label) \(Child.Ending.killed(signal))")
        }
        guard errors.isEmpty else {
            throw Failure("\(label) printed on its error output: \(errors.joined(separator: " | "))")
        }
    }

    /// The present state, for a person.
    var summary: [String] {
        views.sorted { $0.key < $1.key }.map { id, view in
            let counts = ledger.received.filter { $0.key.peer == id }.map {
                "\($0.value.count) of run \($0.key.run)"
            }
            return "of \(id.prefix(8)) \(view.name): found \(view.isFound), \(view.state), received "
                + "[\(counts.joined(separator: ", "))], sent \(ledger.sent[id]?.count ?? 0)"
        }
    }

    // MARK: Output

    private func handle(_ line: String, from stream: Child.Stream) {
        guard stream == .output else {
            errors.append(line)
            host.lab.journal.note(label, "! \(line)")
            return
        }
        let words = line.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        if !["received", "sent", "value", "asked"].contains(words[0]) { host.lab.journal.note(label, line) }
        switch (words[0], words.count) {
        case ("ready", 3): (id, run) = (words[1], words[2])
        case ("found", 5...):
            let routes = words[2].split(separator: ",").map(String.init)
            views[words[1], default: View()].routes = routes
            // A route may also be an address that was given by hand.
            views[words[1], default: View()].isFound = routes.contains {
                $0.hasSuffix(".mdns") || $0.hasPrefix("bluetooth:") || $0.hasPrefix("nats:")
            }
            views[words[1], default: View()].info = words[3].split(separator: ",").map(String.init)
            views[words[1], default: View()].name = words[4...].joined(separator: " ")
        case ("lost", 2):
            views[words[1], default: View()].routes = []
            views[words[1], default: View()].isFound = false
        case ("state", 4...): move(words[1], from: words[2], to: words[3], words[4...].joined(separator: " "))
        case ("over", 3): views[words[1], default: View()].transports.append(words[2])
        case ("packets", 3): views[words[1], default: View()].packets.append(words[2] == "true")
        case ("value", 3):
            guard let number = UInt64(words[2]) else { return recordUnknownLine(line) }
            views[words[1], default: View()].values.append((number, host.lab.elapsed))
        case ("transport", 3...):
            conditions[words[1]] = words[2...].joined(separator: " ")
        case ("asked", 2):
            guard let number = UInt64(words[1]) else { return recordUnknownLine(line) }
            asked.append(number)
        case ("suspected", 3): views[words[1], default: View()].isSuspected = words[2] == "true"
        case ("received", 4):
            guard let number = UInt64(words[3]) else { return recordUnknownLine(line) }
            ledger.didReceive(number, from: .init(peer: words[1], run: words[2]))
            views[words[1], default: View()].arrivals.append(host.lab.journal.now)
        case ("sent", 3):
            guard let number = UInt64(words[2]) else { return recordUnknownLine(line) }
            ledger.didSend(number, to: words[1])
        case ("damaged", _): ledger.didReceiveDamaged(line)
        case ("pong", 3):
            guard let microseconds = Int(words[2]) else { return recordUnknownLine(line) }
            let slowest = views[words[1]]?.slowestRoundTrip ?? .zero
            views[words[1], default: View()].slowestRoundTrip = max(slowest, .microseconds(microseconds))
            views[words[1], default: View()].pongs += 1
        case ("advertised", 2...): advertisedName = words[1...].joined(separator: " ")
        case ("listening", _): listening = Array(words[1...])
        case ("trouble", _): troubles.append(words[1...].joined(separator: " "))
        case ("failed", _): failures.append(words[1...].joined(separator: " "))
        case ("count", 3): statistics[words[1]] = Int(words[2])
        case ("quality", 3), ("invited", _), ("uninvited", _), ("called", _), ("left", _), ("closed", _):
            break
        default: recordUnknownLine(line)
        }
    }

    private func recordUnknownLine(_ line: String) {
        host.lab.supervisor.report("\(label) printed what no peer should: \(line)")
    }

    private func move(_ peer: String, from: String, to state: String, _ cause: String) {
        let view = views[peer, default: View()]
        if view.state != from {
            host.lab.supervisor.report(
                "\(label): \(peer) was \(view.state), and went from \(from) to \(state)")
        }
        views[peer, default: View()].state = state
        views[peer, default: View()].cause = cause
        views[peer, default: View()].states.append((state, host.lab.journal.now, cause))
    }
}
