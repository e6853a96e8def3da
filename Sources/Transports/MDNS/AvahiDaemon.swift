import CAvahi
import NighCore
import NighUV

/// Uses the avahi-daemon of this machine, over D-Bus.
///
/// libavahi-client waits inside its calls for the daemon's answer, up to 25 seconds when the daemon hangs. So it runs
/// on a thread of its own (`AvahiDaemonThread`), and this object stands for it on the loop: calls and events cross
/// between the two. If a call is not answered in time, the daemon counts as down.
///
/// Loop only.
final class AvahiDaemon: DiscoveryBackend {
    /// How long a call may take before the daemon counts as hung.
    static let answerTimeout = Moment.Span.seconds(2)
    /// The pause before another attempt to start the thread.
    static let threadRetry = Moment.Span.seconds(1)

    private let loop: any EventLoop
    private let interface: String?
    private weak var events: (any DiscoveryBackendEvents)?
    private var thread: AvahiDaemonThread?
    private var watches: Set<UInt64> = []
    private var publication: UInt64 = 0
    private var isUp = false
    private var version = ""
    private var problem: NighError?
    private var sent: UInt64 = 0
    private var answered: UInt64 = 0
    private var timer: LoopTimer?

    init(on loop: any EventLoop, interface: String?) {
        self.loop = loop
        self.interface = interface
    }

    let kind = DiscoveryCondition.Provider.daemon
    // avahi-daemon keeps 1,024 objects for one program (objects-per-client-max). Each instance takes four, and this
    // program's own service some.
    let instanceLimit = 200

    func start(_ events: any DiscoveryBackendEvents) {
        self.events = events
        open()
    }

    private func open() {
        do throws(NighError) {
            let daemon = LoopBound(self, on: loop)
            thread = try AvahiDaemonThread(interface: interface) { event in
                daemon.execute { $0.handle(event) }
            }
            send { $0.connect() }
        } catch {
            timer = loop.schedule(at: loop.now + Self.threadRetry) {
                self.timer = nil
                self.open()
            }
            goDown(error)
        }
    }

    func shutdown() {
        events = nil
        if let timer { loop.cancel(timer) }
        timer = nil
        // It ends by itself, so nothing here waits for a daemon that hangs.
        thread?.end()
        thread = nil
    }

    func watch(_ question: Question, as number: UInt64) {
        watches.insert(number)
        send { $0.watch(question, as: number) }
    }

    func unwatch(_ number: UInt64) {
        guard watches.remove(number) != nil else { return }
        send { $0.unwatch(number) }
    }

    func publish(_ publication: Publication) {
        self.publication += 1
        send { [number = self.publication] in $0.publish(publication, as: number) }
    }

    func updateText(of publication: Publication) {
        send { $0.updateText(of: publication) }
    }

    func unpublish() {
        publication += 1
        send { $0.unpublish() }
    }

    func addressesChanged() {
        // The daemon watches its interfaces itself; only the index behind the interface's name may have changed.
        if interface != nil { send { $0.checkInterface() } }
    }

    func diagnose() -> Diagnosis {
        if isUp { return Diagnosis("avahi-daemon", .pass, "answers, \(version)") }
        return Diagnosis(
            "avahi-daemon", .fail, problem?.cause.description ?? "has not answered yet",
            advice: problem?.advice)
    }

    // MARK: Between the threads

    private func send(_ call: @escaping @Sendable (AvahiDaemonThread) -> Void) {
        guard let thread else { return }
        sent += 1
        thread.perform(call, number: sent)
        guard timer == nil else { return }
        wait(for: sent)
    }

    private func wait(for number: UInt64) {
        timer = loop.schedule(at: loop.now + Self.answerTimeout) {
            self.timer = nil
            guard self.answered < number else {
                if self.answered < self.sent { self.wait(for: self.sent) }
                return
            }
            self.goDown(
                NighError(
                    .starting, .unavailable("avahi-daemon does not answer"),
                    advice: "`systemctl restart avahi-daemon`, \(AvahiProblem.embeddedAdvice)"))
            // Any later answer to these calls concerns a daemon that has been given up.
            self.thread?.startOver()
        }
    }

    private func goDown(_ error: NighError) {
        let isNews = isUp || problem != error
        isUp = false
        problem = error
        watches = []
        publication += 1
        if isNews { events?.backendDown(self, error) }
    }

    private func handle(_ event: AvahiDaemonThread.Event) {
        guard let events else { return }
        switch event {
        case .answered(let number):
            answered = max(answered, number)
        case .up(let host, let version):
            isUp = true
            problem = nil
            self.version = version
            events.backendUp(self, host: host)
        case .down(let error):
            goDown(error)
        case .changed(let number, let change):
            if watches.contains(number) { events.watchChanged(self, number, change) }
        case .watchFailed(let number, let error):
            if watches.remove(number) != nil { events.watchFailed(self, number, error) }
        case .published(let number):
            if number == publication { events.publicationSucceeded(self) }
        case .collided(let number):
            if number == publication { events.publicationCollided(self) }
        case .publishingFailed(let number, let error):
            if number == publication { events.publicationFailed(self, error) }
        }
    }
}
