import Glibc

/// A running `lab peer` in a scenario. What it has printed is kept as the present state.
final class PeerProcess {
    /// The arguments of `lab peer` besides its name.
    struct Options {
        fileprivate var arguments: [String]

        /// Options with a transport's spec.
        static func over(_ transport: String) -> Options { Options(arguments: ["--transport", transport]) }

        static let embedded = Options.over("tcp:mdns=embedded")
        static let daemon = Options.over("tcp:mdns=daemon")
        /// The default of most programs: the daemon if there is one, otherwise embedded.
        static let byItself = Options.over("tcp")
        /// Without any discovery.
        static let byHand = Options.over("tcp:mdns=off")

        func adding(_ more: String...) -> Options { Options(arguments: arguments + more) }

        /// These options, with invitations to every peer it finds.
        var meeting: Options { adding("--meet") }

        /// These options, with an identity that is kept in `file` in the host's /run. The same file makes the same
        /// peer.
        func kept(in file: String) -> Options { adding("--identity", "/run/\(file)") }
    }

    /// All that it knows of another peer.
    struct View {
        /// Whether discovery shows the peer now.
        var isFound = false
        var name = ""
        var routes: [String] = []
        var info: [String] = []
        /// Every state so far, with its time and its reason, if one was reported.
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
        /// The unreliable values that have come.
        var values: [UInt64] = []
        /// The numbers of the messages that its session accepted for the other peer.
        var sent: [UInt64] = []
        /// The numbers of the messages that came, by the run of the other peer's program.
        var received: [String: [UInt64]] = [:]

        var state: String { states.last?.state ?? "unavailable" }
        /// The reason for the state, if one was reported.
        var cause: String { states.last?.cause ?? "" }
    }

    let name: String
    unowned let host: Host
    let label: String
    private(set) var id = ""
    private(set) var run = ""
    private(set) var views: [String: View] = [:]
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

    private let child: Child
    private var errors: [String] = []
    /// The first violation of a promise of messages.
    private var fault: String?

    init(_ name: String, _ options: Options, on host: Host) throws {
        self.name = name
        self.host = host
        label = "\(host.name)/\(name)"
        let command = host.launcher + [try Spawning.ownPath(), "peer", "--name", name] + options.arguments
        child = try host.lab.supervisor.start(label, command)
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

    /// Calls another one at its IPv4 address.
    func call(_ other: PeerProcess) {
        let address = other.listening.first { $0.contains(other.host.address()) } ?? ""
        sendCommand("call \(address)")
    }

    /// Calls an address in vain.
    func call(_ address: String, failsWith reason: String, within limit: Duration) throws {
        let count = failures.count
        sendCommand("call \(address)")
        try host.lab.wait(for: "the call to \(address) to fail", within: limit) { failures.count > count }
        try host.lab.check("it says \"\(reason)\"", failures.last?.contains(reason) == true)
    }

    /// Sends `count` numbered messages with a `pause` after each. Without a count, sends until `stopSending`.
    func send(_ count: Int? = nil, to other: PeerProcess, every pause: Duration = .zero, size: Int = 64) {
        let milliseconds = Int(pause / .milliseconds(1))
        sendCommand("send \(other.id) \(count.map(String.init) ?? "on") \(size) \(milliseconds)")
    }

    /// Sends numbered values unreliably with a `pause` after each, until `stopSending`.
    func show(to other: PeerProcess, every pause: Duration) {
        sendCommand("show \(other.id) \(Int(pause / .milliseconds(1)))")
    }

    /// Has it count what it did.
    func count() throws {
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

    /// Whether the conversation with another peer never ended.
    func isUnbroken(with other: PeerProcess) -> Bool {
        !view(of: other).states.contains { $0.state == "disconnected" }
    }

    /// The numbers of the messages that arrived from the other peer's present run.
    func received(from other: PeerProcess) -> [UInt64] { view(of: other).received[other.run] ?? [] }

    /// The numbers of the messages that its session accepted for another peer.
    func sent(to other: PeerProcess) -> [UInt64] { view(of: other).sent }

    /// Whether another peer has received everything sent to it, in order and nothing else.
    func hasDelivered(to other: PeerProcess) -> Bool { other.received(from: self) == sent(to: other) }

    /// The longest time without a message from another peer since `moment`.
    func longestSilence(of other: PeerProcess, since moment: Duration) -> Duration {
        let moments = [moment] + view(of: other).arrivals.filter { $0 > moment }
        return zip(moments, moments.dropFirst()).map { $1 - $0 }.max() ?? .zero
    }

    /// The port on which it listens.
    func port() throws -> Int {
        let ports = listening.compactMap { $0.split(separator: ":").last.flatMap { Int($0) } }
        guard let port = ports.first else { throw Failure("\(label) names no port among \(listening)") }
        return port
    }

    /// Fails if it received what it must not, or ended abnormally.
    func check() throws {
        if let fault { throw Failure("\(label): \(fault)") }
        let mayBe: [Child.Ending] = [.exited(0), .killed(SIGKILL), .killed(SIGTERM)]
        if let ending, !mayBe.contains(ending) { throw Failure("\(label) \(ending)") }
        guard errors.isEmpty else {
            throw Failure("\(label) printed on its error output: \(errors.joined(separator: " | "))")
        }
    }

    /// The present state, for a person.
    var summary: [String] {
        views.sorted { $0.key < $1.key }.map { id, view in
            let counts = view.received.map { "\($1.count) of run \($0)" }
            return "of \(id.prefix(8)) \(view.name): found \(view.isFound), \(view.state), received "
                + "\(counts), sent \(view.sent.count)"
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
        if !["received", "sent", "value"].contains(words[0]) { host.lab.journal.note(label, line) }
        let last = words.last ?? ""
        switch (words[0], words.count) {
        case ("ready", 3): (id, run) = (words[1], words[2])
        case ("transport", 3...): conditions[words[1]] = words[2...].joined(separator: " ")
        case ("advertised", 2...): advertisedName = words[1...].joined(separator: " ")
        case ("listening", _): listening = Array(words[1...])
        case ("trouble", _): troubles.append(words[1...].joined(separator: " "))
        case ("failed", _): failures.append(words[1...].joined(separator: " "))
        case ("count", 3): statistics[words[1]] = Int(last)
        case ("damaged", _): fault = fault ?? line
        case ("quality", _), ("invited", _), ("uninvited", _), ("called", _), ("left", _),
            ("closed", _):
            break
        default:
            guard words.count > 1, change(&views[words[1], default: View()], by: words) else {
                return host.lab.supervisor.report("\(label) printed what no peer should: \(line)")
            }
        }
    }

    /// Handles an event of another peer; returns false if there is no such event.
    private func change(_ view: inout View, by words: [String]) -> Bool {
        let last = words.last ?? ""
        switch (words[0], words.count, UInt64(last)) {
        case ("found", 5..., _):
            view.routes = words[2].split(separator: ",").map(String.init)
            // A route may also be an address that was given by hand.
            view.isFound = view.routes.contains {
                $0.hasSuffix(".mdns") || $0.hasPrefix("bluetooth:") || $0.hasPrefix("nats:")
            }
            view.info = words[3].split(separator: ",").map(String.init)
            view.name = words[4...].joined(separator: " ")
        case ("lost", 2, _): (view.routes, view.isFound) = ([], false)
        case ("state", 4..., _):
            if view.state != words[2] {
                host.lab.supervisor.report(
                    "\(label): \(words[1]) was \(view.state), and went from \(words[2])")
            }
            view.states.append((words[3], host.lab.journal.now, words[4...].joined(separator: " ")))
        case ("over", 3, _): view.transports.append(last)
        case ("packets", 3, _): view.packets.append(last == "true")
        case ("suspected", 3, _): view.isSuspected = last == "true"
        case ("value", 3, let number?): view.values.append(number)
        case ("sent", 3, let number?): view.sent.append(number)
        case ("received", 4, let number?):
            // Gaps are seen where the sent messages are known.
            if let before = view.received[words[2]]?.last, number <= before {
                let isRepeated = view.received[words[2]]?.contains(number) == true
                let fate = isRepeated ? "was given twice" : "came out of order, after \(before)"
                fault = fault ?? "message \(number) of \(view.name) \(fate)"
            }
            view.received[words[2], default: []].append(number)
            view.arrivals.append(host.lab.journal.now)
        case ("pong", 3, let microseconds?):
            view.slowestRoundTrip = max(view.slowestRoundTrip ?? .zero, .microseconds(Int64(microseconds)))
            view.pongs += 1
        default: return false
        }
        return true
    }
}
