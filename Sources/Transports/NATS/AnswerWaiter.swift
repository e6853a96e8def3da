import CNATS
import NighCore
import NighSystem

/// Waits for a server's answers, on a thread of its own: the call of the library that asks also waits.
///
/// It asks for every mark, when a connection begins, when somebody wants to know how long a round trip takes, and after
/// ``interval`` without a question, to notice a server that hangs. It also watches the client's thread while that
/// connects: libnats sets no limit to a TLS handshake.
///
/// `@unchecked Sendable`: the lock guards the variables.
final class AnswerWaiter: @unchecked Sendable {
    /// How long nothing is asked.
    static let interval = Moment.Span.seconds(10)
    /// How long an answer may take before the server counts as hung.
    static let timeout = Moment.Span.seconds(10)

    /// How long the library may take to connect before the client's thread counts as hung.
    static let connectTimeout = Moment.Span.seconds(5)

    private let inbox: Inbox
    private let thread = LoopThread()
    private let lock = Lock()
    private let changed = Condition()
    private var link: ServerLink?
    /// The server to which the client's thread is connecting, and how long it may.
    private var connecting: (server: ServerAddress, deadline: Moment)?
    private var marks: [UInt64] = []
    private var isWanted = false
    private var isAsking = false
    private var hasEnded = false
    /// Wakes the client's thread.
    private let wake: @Sendable () -> Void

    init(into inbox: Inbox, wake: @escaping @Sendable () -> Void) throws(NighError) {
        self.inbox = inbox
        self.wake = wake
        try thread.start { self.run() }
    }

    /// Watches the caller while it connects to `server`.
    func watch<Result>(
        connectingTo server: ServerAddress, _ connect: () throws(NighError) -> Result
    ) throws(NighError) -> Result {
        change { connecting = (server, LoopThread.now + Self.connectTimeout) }
        defer { change { connecting = nil } }
        return try connect()
    }

    /// Asks the server of `link` from now on.
    func begin(with link: ServerLink) {
        change {
            self.link = link
            isWanted = true
        }
    }

    /// Asks nobody any more. Returns when nobody is being asked, which needs the link to be closed.
    func stop() {
        lock.withLock {
            link = nil
            marks = []
            while isAsking { changed.wait(with: lock) }
        }
    }

    /// Reports `mark` once the server has answered a question asked after this call.
    func add(_ mark: UInt64) { change { marks.append(mark) } }

    /// Finds out how long a round trip takes.
    func measure() { change { isWanted = true } }

    /// Has the thread end. It may have to wait for an answer first.
    func end() { change { hasEnded = true } }

    private func change(_ body: () -> Void) {
        lock.withLock {
            body()
            changed.notify()
        }
    }

    private func run() {
        var library: UnsafePointer<CNATSFunctions>?
        while let (link, marks) = next() {
            library = link.library
            let start = LoopThread.now
            let answer = link.awaitAnswer(within: Self.timeout)
            if answer == true {
                inbox.add(.roundTrip(LoopThread.now - start), of: link.number)
                for mark in marks { inbox.add(.marked(mark), of: link.number) }
            }
            change { isAsking = false }
            guard answer == false else { continue }
            link.isSilent.store(true, ordering: .releasing)
            wake()
        }
        library?.pointee.ReleaseThreadMemory()
        // Nobody waits for the end of the thread.
        thread.join()
    }

    /// Waits until there is something to ask. Nil at the end.
    private func next() -> (ServerLink, [UInt64])? {
        var deadline = LoopThread.now + Self.interval
        return lock.withLock {
            while true {
                if hasEnded { return nil }
                if let link, isWanted || !marks.isEmpty || LoopThread.now >= deadline {
                    defer { marks = [] }
                    isWanted = false
                    isAsking = true
                    return (link, marks)
                }
                if let (server, limit) = connecting, LoopThread.now >= limit {
                    connecting = nil
                    inbox.add(.hung(NATSProblem.endless(server)))
                }
                if link == nil { deadline = LoopThread.now + Self.interval }
                changed.wait(with: lock, until: min(deadline, connecting?.deadline ?? .never))
            }
        }
    }
}
