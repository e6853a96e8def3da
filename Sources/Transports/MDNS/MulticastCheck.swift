import Glibc
import NighCore
import NighUV

/// The result of listening for one's own multicast messages.
enum MulticastVerdict: Hashable, Sendable {
    /// The multicast messages of this host come back.
    case works
    /// The messages do not come back, or could not even be sent.
    case blocked(NighError)
    /// Nobody can tell here.
    case unknown
}

/// Finds out whether multicast works as far as this host can know.
protocol MulticastChecking: AnyObject {
    /// Starts a check, unless one is in progress.
    func begin()
    func diagnose() -> [Diagnosis]
    func shutdown()
}

/// Sends a message on every interface and checks whether it comes back. It repeats this, less often while the message
/// does come back.
///
/// Avahi does not report that a firewall drops its packets, and without this check a blocked network looks like an
/// empty one. Losses at a switch or an access point cannot be seen from here.
///
/// The message is a question about a host that does not exist, so that nobody answers it.
///
/// Loop only.
final class MulticastCheck: MulticastChecking {
    /// When the message is sent, counted from the start, until it has come back everywhere.
    static let attempts: [Moment.Span] = [
        .zero, .milliseconds(250), .milliseconds(700), .milliseconds(1_500),
    ]
    /// How long the message may take to come back after it was sent for the last time. This is counted from the actual
    /// sending, which is late on a busy machine: all overdue timers fire together, and then there would be no time to
    /// receive anything in between.
    static let receiveTimeout = Moment.Span.milliseconds(500)
    static let pauseWhenWorking = Moment.Span.seconds(30)
    static let pauseWhenBlocked = Moment.Span.seconds(5)

    private let loop: UVEventLoop
    private let interface: String?
    private let report: (MulticastVerdict) -> Void
    private var sockets: [MulticastSocket] = []
    /// The indices of the sockets that have received the message.
    private var received: Set<Int> = []
    private var message: [UInt8] = []
    private var timers: [LoopTimer] = []
    private var verdict: MulticastVerdict?
    private var silent: [String] = []

    init(on loop: UVEventLoop, interface: String?, report: @escaping (MulticastVerdict) -> Void) {
        self.loop = loop
        self.interface = interface
        self.report = report
    }

    func begin() {
        guard sockets.isEmpty else { return }
        cancelTimers()
        message = Self.question()
        received = []
        sockets = MulticastSocket.all(.listening, interface: interface, loop: loop) { [unowned self] in
            handle($0, $1)
        }
        guard !sockets.isEmpty else { return conclude() }
        for (index, wait) in Self.attempts.enumerated() {
            timers.append(
                loop.schedule(at: loop.now + wait) {
                    self.sendProbe()
                    if index == Self.attempts.count - 1 { self.concludeLater() }
                })
        }
    }

    private func concludeLater() {
        timers.append(loop.schedule(at: loop.now + Self.receiveTimeout) { self.conclude() })
    }

    func shutdown() {
        cancelTimers()
        for socket in sockets { socket.close() }
        sockets = []
    }

    func diagnose() -> [Diagnosis] {
        let subject = "multicast (UDP \(MulticastSocket.port))"
        let id = "multicast"
        switch verdict {
        case .works where silent.isEmpty:
            return [Diagnosis(subject, .pass, "is received back on every interface", id: id)]
        case .works:
            return [
                Diagnosis(
                    subject, .warn, "is not received back on \(silent.joined(separator: ", "))",
                    advice: "a firewall may drop it there", id: id)
            ]
        case .blocked(let error):
            return [Diagnosis(subject, .fail, error.cause.description, advice: error.advice, id: id)]
        case .unknown where NetworkInterface.usable(named: interface)?.isEmpty == true:
            return [
                Diagnosis(
                    subject, .fail, "no network interface is up for it",
                    advice: "`ip address` shows which are up", id: id)
            ]
        case .unknown, nil:
            return [
                Diagnosis(
                    subject, .warn, "it is not known yet whether it works", id: id, isPending: verdict == nil)
            ]
        }
    }

    private func sendProbe() {
        for (index, socket) in sockets.enumerated() where !received.contains(index) { socket.send(message) }
    }

    private func handle(_ index: Int, _ bytes: [UInt8]) {
        guard bytes == message, received.insert(index).inserted, received.count == sockets.count else {
            return
        }
        // In a later turn, because the socket is being read now.
        loop.later { if self.received.count == self.sockets.count { self.conclude() } }
    }

    private func conclude() {
        let spoken = sockets.indices.filter { sockets[$0].failure == nil || sockets[$0].failure == EPERM }
        silent = spoken.filter { !received.contains($0) }
            .map { "\(sockets[$0].interface.name) (IPv\(sockets[$0].version))" }
        let isForbidden = spoken.contains { sockets[$0].failure == EPERM }
        let verdict: MulticastVerdict =
            if spoken.isEmpty {
                .unknown
            } else if silent.count < spoken.count {
                .works
            } else {
                .blocked(Self.error(isForbidden: isForbidden))
            }
        shutdown()
        let pause = verdict == .works ? Self.pauseWhenWorking : Self.pauseWhenBlocked
        timers = [loop.schedule(at: loop.now + pause) { self.begin() }]
        self.verdict = verdict
        report(verdict)
    }

    private func cancelTimers() {
        for timer in timers { loop.cancel(timer) }
        timers = []
    }

    static func error(isForbidden: Bool) -> NighError {
        let how =
            isForbidden
            ? "this host is not allowed to send it" : "this host does not receive its own messages"
        return NighError(
            .starting,
            .unavailable("multicast (UDP port \(MulticastSocket.port)) seems to be blocked: \(how)"),
            advice:
                "let UDP \(MulticastSocket.port) to 224.0.0.251 and ff02::fb through the firewall, both ways, or dial the "
                + "other side's address directly")
    }

    /// A question that nobody can answer, a different one each time.
    private static func question() -> [UInt8] {
        let digits = String(UInt64.random(in: .min ... .max), radix: 16)
        let name = DomainName(literal: "nigh-check-\(digits).local")
        return DNSMessage.query([Question(name: name, type: .address4)], number: 0)
    }
}
