import CNATS
import Glibc
import NighCore
import NighSystem
import Synchronization

/// The thread on which a client connects, subscribes, publishes and receives.
///
/// It keeps one connection to one of the servers. When the connection ends, it tries each of the servers at once, in
/// random order, and after that again and again, with a pause that grows from ``firstPause`` to ``longestPause``.
///
/// `@unchecked Sendable`: confined to the thread, apart from `wake` and `end`.
final class ClientThread: @unchecked Sendable {
    static let firstPause = Moment.Span.milliseconds(250)
    static let longestPause = Moment.Span.seconds(2)
    /// A connection that ends sooner counts as failed. So a server that ends each one is asked with pauses.
    private static let shortLife = Moment.Span.seconds(1)
    /// How long the end waits for packets that were published before it.
    private static let lastWrites = Moment.Span.seconds(1)
    /// How many bytes should wait: the amount that a fast network takes in some milliseconds.
    static let queue = 1 << 20
    /// The most bytes of sent packets that are kept, and the shortest packet that is kept.
    private static let leftSize = 512 << 10
    private static let largePacket = 16 << 10
    /// How often the socket is read before packets are written again, while each time brings at least ``muchToRead``.
    private static let readsInARow = 4
    private static let muchToRead = 8 << 10

    let outbox = Outbox()
    let waiter: AnswerWaiter
    /// The bytes that the library holds.
    private let bufferedBytes = Atomic<Int>(0)
    /// Whether the loop wants to know when half of ``queue`` is free.
    private let wantsRoom = Atomic<Bool>(false)

    private let options: NATSOptions
    private let inbox: Inbox
    private let thread = LoopThread()
    private let alarm: Alarm

    private var library: UnsafePointer<CNATSFunctions>?
    private var servers: ServerList
    private var generator = SeededGenerator(seed: .random(in: .min ... .max))
    private var link: ServerLink?
    private var linkBegan = Moment(nanoseconds: 0)
    private var shortLives = 0
    private var pause = ClientThread.firstPause
    private var nextAttempt = Moment(nanoseconds: 0)
    private var reported: NighError?
    /// The commands that the thread has taken from the outbox, and how many of them are done.
    private var commands = ContiguousArray<Outbox.Command>()
    private var commandsDone = 0
    private var commandsGeneration: UInt64 = 0
    /// The last large packets that the library has copied, the oldest first. Without them the allocator would give the
    /// memory of packets back to the system whenever all have left, and take it anew for the next ones. That was a
    /// quarter of the time of a stream.
    private var left = Ring<[UInt8]>()
    private var leftBytes = 0

    /// Wakes a thread that polls: `descriptor` becomes readable.
    private final class Alarm: Sendable {
        let descriptor: Int32

        init() throws(NighError) {
            descriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
            guard descriptor >= 0 else {
                throw NighError(
                    .starting, .system(errno, String(cString: strerror(errno))),
                    transport: NATSOptions.scheme,
                    advice: "too many descriptors are open: raise `ulimit -n`")
            }
        }

        deinit { close(descriptor) }

        func ring() {
            var one: UInt64 = 1
            _ = write(descriptor, &one, 8)
        }

        func silence() {
            var count: UInt64 = 0
            _ = read(descriptor, &count, 8)
        }
    }

    /// Throws if the system has no descriptor or no thread left.
    init(_ options: NATSOptions, into inbox: Inbox) throws(NighError) {
        let alarm = try Alarm()
        self.alarm = alarm
        self.options = options
        self.inbox = inbox
        servers = ServerList(options.servers)
        waiter = try AnswerWaiter(into: inbox) { alarm.ring() }
        do throws(NighError) {
            try thread.start { self.run() }
        } catch {
            waiter.end()
            throw error
        }
    }

    // MARK: Calls from the loop

    /// The bytes that were published and are not written yet.
    var bytesWaiting: Int { outbox.byteCount + bufferedBytes.load(ordering: .sequentiallyConsistent) }

    /// Carries out `command` on the connection numbered `generation`, if that is still the one. Returns whether the
    /// thread sleeps until ``wake()`` is called.
    func perform(_ command: Outbox.Command, on generation: UInt64) -> Bool {
        outbox.add(command, for: generation)
    }

    func wake() { alarm.ring() }

    /// Reports when at least half of ``queue`` is free.
    func awaitRoom(on generation: UInt64) {
        wantsRoom.store(true, ordering: .sequentiallyConsistent)
        // The thread may have written everything meanwhile, and then it does not look again.
        reportRoom(to: generation)
    }

    /// Reports that there is room again, if somebody waits for that and there is. Callable from any thread.
    private func reportRoom(to generation: UInt64) {
        guard wantsRoom.load(ordering: .sequentiallyConsistent), bytesWaiting <= Self.queue / 2,
            wantsRoom.exchange(false, ordering: .sequentiallyConsistent)
        else { return }
        inbox.add(.hasRoom, of: generation)
    }

    /// Ends the connection and the thread. Messages published before are still written, for a short time.
    func end() {
        outbox.end()
        alarm.ring()
    }

    // MARK: The thread

    private func run() {
        library = CNATS()
        if let library {
            inbox.add(.loaded(library.pointee.GetVersion().map { String(cString: $0) } ?? ""))
        } else {
            inbox.disconnect(NATSProblem.missing(CNATSProblem().map { String(cString: $0) } ?? ""))
        }
        while !outbox.hasEnded {
            if let link {
                turn(link)
            } else if library != nil, LoopThread.now >= nextAttempt {
                connect()
            } else {
                sleep(until: library == nil ? .never : nextAttempt)
            }
        }
        if let link { finish(link) }
        leave()
        waiter.end()
        library?.pointee.ReleaseThreadMemory()
        // Nobody waits for the end of the thread.
        thread.join()
    }

    /// Does the work on a connection once, and waits if there is none.
    private func turn(_ link: ServerLink) {
        performCommands(on: link)
        if link.wantsToWrite.load(ordering: .acquiring) { link.write() }
        bufferedBytes.store(link.bufferedBytes, ordering: .sequentiallyConsistent)
        reportRoom(to: link.number)
        if link.isLeaving.load(ordering: .acquiring), LoopThread.now >= nextAttempt {
            return moveAway(from: link)
        }
        let isBlocked = link.wantsToWrite.load(ordering: .acquiring)
        let deadline = link.isLeaving.load(ordering: .acquiring) ? nextAttempt : .never
        // While the server takes nothing, waiting commands cannot be carried out.
        let mayWait = isBlocked || commandsDone == commands.count
        if wait(for: link, toWrite: isBlocked, mayWait: mayWait, until: deadline) {
            for _ in 0..<Self.readsInARow {
                // Asking whether there is more would cost as much as a packet.
                guard link.read() >= Self.muchToRead, !link.isClosed, isReadable(link.socket) else { break }
            }
        }
        if link.isClosed || link.isSilent.load(ordering: .acquiring) { lost(link) }
    }

    private func performCommands(on link: ServerLink) {
        if commandsDone == commands.count {
            commands.removeAll(keepingCapacity: true)
            commandsDone = 0
            commandsGeneration = outbox.take(&commands)
        }
        guard commandsGeneration == link.number else { return dropCommands() }
        var held = link.bufferedBytes
        while commandsDone < commands.count, held < ServerLink.bufferTarget {
            switch commands[commandsDone] {
            case .publish(let packet, let subject, let answers):
                link.publish(packet, to: subject, answers: answers)
                outbox.packetLeft(packet.count)
                held += packet.count
                keep(packet)
            case .subscribe(let subject): link.subscribe(to: subject)
            case .unsubscribe(let subject): link.unsubscribe(from: subject)
            case .mark(let number): waiter.add(number)
            }
            commandsDone += 1
        }
    }

    private func keep(_ packet: [UInt8]) {
        guard packet.count >= Self.largePacket else { return }
        left.append(packet)
        leftBytes += packet.count
        while leftBytes > Self.leftSize, let oldest = left.popFirst() { leftBytes -= oldest.count }
    }

    private func dropCommands() {
        outbox.drop(commands[commandsDone...])
        commands.removeAll(keepingCapacity: true)
        commandsDone = 0
    }

    // MARK: Connecting

    private func connect() {
        switch openLink(besides: nil) {
        case .success(let link): begin(link)
        case .failure(let error):
            report(error)
            pauseBeforeNextAttempt()
        }
    }

    private func begin(_ link: ServerLink) {
        self.link = link
        linkBegan = LoopThread.now
        nextAttempt = Moment(nanoseconds: 0)
        reported = nil
        servers.note(link.discoveredServers, from: link.server)
        inbox.connect(link.number, link.facts)
        waiter.begin(with: link)
    }

    private func pauseBeforeNextAttempt() {
        nextAttempt = LoopThread.now + generator.jittered(pause)
        pause = min(pause + pause, Self.longestPause)
    }

    /// Tries each server once, except for `excluded`.
    private func openLink(besides excluded: ServerAddress?) -> Result<ServerLink, NighError> {
        guard let library else { return .failure(NATSProblem.missing("")) }
        var attempts: [NighError] = []
        for server in servers.order(using: &generator) where excluded.map(server.isSamePlace) != true {
            guard !outbox.hasEnded else { break }
            do throws(NighError) {
                let credentials = try options.credentials.map { path throws(NighError) in
                    try NATSCredentials.read(path: path)
                }
                let greeting = try ServerGreeting.read(from: server, within: ServerLink.connectTimeout)
                guard !greeting.isLeaving else { throw NATSProblem.leaving(server) }
                let link = ServerLink(
                    to: server, greeting, library, into: inbox, credentialsPath: options.credentials,
                    thread: thread, wake: { [alarm] in alarm.ring() })
                try waiter.watch(connectingTo: server) { () throws(NighError) in
                    try link.connect(credentials, authorities: options.authorities)
                }
                return .success(link)
            } catch {
                if !attempts.contains(error) { attempts.append(error) }
            }
        }
        guard attempts.count != 1 else { return .failure(attempts[0]) }
        return .failure(
            NighError(.starting, .allFailed, transport: NATSOptions.scheme, attempts: attempts))
    }

    private func report(_ error: NighError) {
        guard error != reported else { return }
        reported = error
        inbox.disconnect(error)
    }

    // MARK: The end of a connection

    private func lost(_ link: ServerLink) {
        let error = link.endError
        servers.note(link.discoveredServers, from: link.server)
        leave()
        report(error)
        let lived = LoopThread.now - linkBegan
        shortLives = lived < Self.shortLife ? shortLives + 1 : 0
        if lived >= Self.longestPause { pause = Self.firstPause }
        // The first attempt at another server comes at once.
        if shortLives > 2 { pauseBeforeNextAttempt() } else { nextAttempt = LoopThread.now }
    }

    /// Connects to another server, and only then leaves the one that is about to end its connections. While there is no
    /// other one, the connection goes on.
    private func moveAway(from link: ServerLink) {
        servers.note(link.discoveredServers, from: link.server)
        guard case .success(let next) = openLink(besides: link.server) else {
            return pauseBeforeNextAttempt()
        }
        finish(link)
        leave()
        inbox.disconnect(NATSProblem.leaving(link.server))
        pause = Self.firstPause
        begin(next)
    }

    /// Writes all messages published on `link`, and waits until the server has read it all and has ended the
    /// connection. To close it at once would not do: if the server is just sending something, the system throws away
    /// bytes that the server has not read yet.
    private func finish(_ link: ServerLink) {
        let deadline = LoopThread.now + Self.lastWrites
        var isWriting = true
        while !link.isClosed, LoopThread.now < deadline {
            if isWriting {
                performCommands(on: link)
                if link.wantsToWrite.load(ordering: .acquiring) {
                    link.write()
                } else if commandsDone == commands.count {
                    isWriting = false
                    link.endWriting()
                }
            }
            let isBlocked = isWriting && link.wantsToWrite.load(ordering: .acquiring)
            let events = POLLIN | (isBlocked ? POLLOUT : 0)
            var wanted = pollfd(fd: link.socket, events: Int16(events), revents: 0)
            let isReady = poll(&wanted, 1, isWriting && !isBlocked ? 0 : 50) > 0
            if isReady, wanted.revents & ~Int16(POLLOUT) != 0 { link.read() }
        }
    }

    /// Ends the connection, if there is one, and drops everything that waits for it.
    private func leave() {
        dropCommands()
        bufferedBytes.store(0, ordering: .sequentiallyConsistent)
        wantsRoom.store(false, ordering: .sequentiallyConsistent)
        guard let link else { return }
        self.link = nil
        link.close()
        waiter.stop()
        link.release()
    }

    // MARK: Waiting

    /// Waits without a connection. Commands for an earlier one are dropped.
    private func sleep(until moment: Moment) {
        _ = outbox.take(&commands)
        dropCommands()
        _ = wait(for: nil, toWrite: false, mayWait: true, until: moment)
    }

    /// Waits until there is something to do, if it may. Returns whether the link can be read.
    private func wait(
        for link: ServerLink?, toWrite: Bool, mayWait: Bool, until moment: Moment
    ) -> Bool {
        var wanted = (
            pollfd(fd: alarm.descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: link?.socket ?? -1, events: Int16(POLLIN | (toWrite ? POLLOUT : 0)), revents: 0)
        )
        let isAsleep = mayWait && outbox.fallAsleep()
        let timeout: Int32
        if !isAsleep && !(mayWait && toWrite) {
            timeout = 0
        } else if moment == .never {
            timeout = -1
        } else {
            timeout = Int32(clamping: max(0, (moment - LoopThread.now).nanoseconds / 1_000_000 + 1))
        }
        _ = withUnsafeMutableBytes(of: &wanted) {
            poll($0.bindMemory(to: pollfd.self).baseAddress, 2, timeout)
        }
        if isAsleep { outbox.wakeUp() }
        if wanted.0.revents != 0 { alarm.silence() }
        return wanted.1.revents & ~Int16(POLLOUT) != 0
    }

    private func isReadable(_ socket: Int32) -> Bool {
        var wanted = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        return poll(&wanted, 1, 0) > 0
    }
}
