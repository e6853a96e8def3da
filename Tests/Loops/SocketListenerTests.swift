import Glibc
import NighCore
import NighTestKit
import NighUV
import Testing

/// Tests `SocketListener` and `ConnectingSocket` over Unix sockets.
struct SocketListenerTests {
    /// A listener or a connecting socket on a loop of its own, and what it reports.
    ///
    /// `@unchecked Sendable`: guarded by its monitor; the rest is confined to the loop.
    private final class Ground: @unchecked Sendable {
        let loop = UVEventLoop()
        private let monitor = Monitor()
        private var recorded: [String] = []
        var listener: SocketListener?
        var connecting: ConnectingSocket?

        deinit { loop.shutdown() }

        var notes: [String] { monitor.read { recorded } }

        func note(_ note: String) { monitor.change { recorded.append(note) } }

        func wait(for note: String, times: Int = 1) -> Bool {
            monitor.wait(within: .seconds(20)) { recorded.count { $0 == note } >= times }
        }

        /// Runs `body` on the loop and waits for it.
        func run(_ body: @escaping (Ground) -> Void) { loop.call { [self] in body(self) } }

        /// Listens; by default, closes every accepted connection.
        func listen(_ descriptor: Int32, whenAccepted: @escaping @Sendable (Int32) -> Void = { close($0) }) {
            run { ground in
                ground.listener = try? SocketListener(descriptor: descriptor, on: ground.loop) {
                    [unowned ground] in
                    whenAccepted($0)
                    ground.note("accepted")
                } failed: { [unowned ground] in
                    ground.note("failed: \($0.cause)")
                }
            }
            precondition(listener != nil, "cannot listen")
        }

        /// Starts to connect, and notes the outcome and the end of the call.
        func connect(_ descriptor: Int32, to address: [UInt8], timeout: Duration = .seconds(20)) {
            run { ground in
                ground.connecting = address.withUnsafeBytes {
                    ConnectingSocket(descriptor, to: $0, timeout: timeout, on: ground.loop) {
                        [unowned ground] in
                        switch $0 {
                        case .success: ground.note("connected")
                        case .failure(let fault): ground.note("not connected: \(fault.cause)")
                        }
                    }
                }
                ground.note("called")
            }
        }
    }

    /// A name of this machine, of a socket that listens or of nobody.
    private struct Place {
        let name = "nigh-test-\(UInt64.random(in: .min ... .max))"

        var address: [UInt8] { UnixTransport.withAddress(name) { Array($0) } }

        func listen(backlog: Int32 = 10) -> Int32 {
            UnixTransport.listeningSocket(at: name, backlog: backlog)
        }

        /// Connects `descriptor` by a blocking call. Returns whether that worked.
        func connect(_ descriptor: Int32) -> Bool {
            UnixTransport.withAddress(name) {
                Glibc.connect(
                    descriptor, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
            } == 0
        }

        /// A socket that is connected by a blocking call; nil if that fails.
        func caller() -> BareEnd? {
            let end = BareEnd(UnixTransport.socket())
            return connect(end.descriptor) ? end : nil
        }

        func callers(_ count: Int) -> [BareEnd] { (0..<count).compactMap { _ in caller() } }
    }

    // MARK: Listening

    @Test func `All callers are accepted, non-blocking and close-on-exec, even if they come at once`() {
        let place = Place()
        let descriptor = place.listen(backlog: 100)
        let callers = place.callers(50)
        #expect(callers.count == 50)
        let ground = Ground()
        ground.listen(descriptor) { [unowned ground] caller in
            let isWell = fcntl(caller, F_GETFL) & O_NONBLOCK != 0 && fcntl(caller, F_GETFD) == FD_CLOEXEC
            close(caller)
            if !isWell { ground.note("with the wrong flags") }
        }
        #expect(ground.wait(for: "accepted", times: 50))
        #expect(ground.notes.allSatisfy { $0 == "accepted" })
    }

    @Test func `One wake-up accepts a limited number, so that other work on the loop has its turn`() {
        let place = Place()
        let descriptor = place.listen(backlog: 100)
        let callers = place.callers(80)
        let ground = Ground()
        let sockets = SocketPair()
        let end = PipeEnd(sockets.near, on: ground.loop) { _ in ground.note("read") }
        ground.listen(descriptor) { [unowned ground] caller in
            close(caller)
            if ground.notes.isEmpty { sockets.far.write([1]) }
        }
        #expect(ground.wait(for: "accepted", times: callers.count))
        let turn = ground.notes.firstIndex(of: "read") ?? .max
        #expect(turn < callers.count / 2)
        end.finish()
    }

    @Test func `A closed listener accepts nobody, even if it was closed inside its callback`() {
        let place = Place()
        let descriptor = place.listen()
        let socket = SocketIdentity(descriptor)
        let callers = place.callers(5)
        let ground = Ground()
        ground.listen(descriptor) { [unowned ground] in
            close($0)
            ground.listener?.close()
        }
        #expect(ground.wait(for: "accepted"))
        #expect(callers.last?.isAtEnd == false)
        ground.run { $0.listener?.close() }
        #expect(ground.notes == ["accepted"])
        #expect(!socket.isOpen)
        // A program that is just being started can still have the socket for a moment, but nobody accepts there.
        #expect(place.caller()?.isAtEnd != true)
    }

    @Test func `A listener that is released closes its socket`() {
        let descriptor = Place().listen()
        let socket = SocketIdentity(descriptor)
        let ground = Ground()
        ground.listen(descriptor)
        ground.run { $0.listener = nil }
        #expect(!socket.isOpen)
    }

    @Test func `A descriptor that cannot be polled is refused, and its caller keeps it`() {
        let ground = Ground()
        let file = open("/proc/self/exe", O_RDONLY)
        let socket = SocketIdentity(file)
        for descriptor in [file, -1] {
            ground.run { ground in
                #expect(throws: SocketFault.self) {
                    try SocketListener(
                        descriptor: descriptor, on: ground.loop, accepted: { _ in }, failed: { _ in })
                }
            }
        }
        #expect(socket.isOpen)
        close(file)
    }

    /// Runs in a process of its own, because the shortage of descriptors affects a whole process.
    @Test
    func `A shortage of descriptors is reported once, does not spin, and all callers are accepted later`()
        async
    {
        await #expect(processExitsWith: .success) {
            let place = Place()
            let ground = Ground()
            ground.listen(place.listen())
            // A client can connect with a descriptor that exists already. Accepting the connection needs one more.
            let callers = (0..<2).map { _ in UnixTransport.socket() }
            // One for the listener, and one for the test's own wait, which opens /proc/loadavg.
            let spares = (0..<2).map { _ in dup(STDERR_FILENO) }
            ResourceLimits.limitDescriptors()
            for caller in callers { #expect(place.connect(caller)) }
            let words = "failed: \(SocketFault(EMFILE).cause)"
            #expect(ground.wait(for: words))
            #expect(SocketFault(EMFILE).advice?.contains("ulimit -n") == true)
            let before = clock()
            // Longer than the pause before the next attempt.
            try waitForReply { [loop = ground.loop] reply in
                loop.execute { loop.schedule(at: loop.now + .milliseconds(250)) { reply(()) } }
            }
            #expect(Double(clock() - before) / Double(CLOCKS_PER_SEC) < 0.1)
            #expect(ground.notes == [words])
            for spare in spares { close(spare) }
            #expect(ground.wait(for: "accepted", times: 2))
            #expect(ground.notes == [words, "accepted", "accepted"])
        }
    }

    // MARK: Connecting

    @Test func `A connection is reported once, in a later turn, and its socket may go to a pipe at once`() {
        let place = Place()
        let server = Ground()
        server.listen(place.listen()) {
            _ = Glibc.write($0, "hello", 5)
            close($0)
        }
        let ground = Ground()
        let descriptor = UnixTransport.socket()
        ground.connect(descriptor, to: place.address)
        #expect(ground.wait(for: "connected"))
        #expect(ground.notes == ["called", "connected"])
        let end = PipeEnd(descriptor, on: ground.loop)
        #expect(end.wait { end.isFinished })
        #expect(end.bytes == Array("hello".utf8))
        #expect(server.wait(for: "accepted"))
    }

    @Test func `A connection that fails is also reported in a later turn, and the caller keeps the socket`() {
        for (address, cause) in [(Place().address, NighError.Cause.refused), ([], SocketFault(EINVAL).cause)]
        {
            let ground = Ground()
            let end = BareEnd(UnixTransport.socket())
            let socket = SocketIdentity(end.descriptor)
            ground.connect(end.descriptor, to: address)
            #expect(ground.wait(for: "not connected: \(cause)"))
            #expect(ground.notes.first == "called")
            #expect(socket.isOpen)
        }
    }

    @Test func `A connection to a listener with a full backlog is retried until there is room`() {
        let place = Place()
        let descriptor = place.listen(backlog: 0)
        let first = place.caller()
        #expect(first != nil)
        let ground = Ground()
        let late = BareEnd(UnixTransport.socket())
        ground.connect(late.descriptor, to: place.address)
        // So the attempt was deferred at least once.
        #expect(ground.notes == ["called"])
        let server = Ground()
        server.listen(descriptor)
        #expect(ground.wait(for: "connected"))
        #expect(server.wait(for: "accepted", times: 2))
    }

    @Test func `A connection that takes too long fails, and one that is cancelled before reports nothing`() {
        let place = Place()
        let listener = BareEnd(place.listen(backlog: 0))
        let first = place.caller()
        #expect(first != nil)
        let (cancelled, ground) = (Ground(), Ground())
        let ends = (0..<2).map { _ in BareEnd(UnixTransport.socket()) }
        cancelled.connect(ends[0].descriptor, to: place.address, timeout: .milliseconds(1))
        cancelled.run {
            $0.connecting?.cancel()
            $0.connecting?.cancel()
        }
        let before = cancelled.notes
        ground.connect(ends[1].descriptor, to: place.address, timeout: .milliseconds(20))
        #expect(ground.wait(for: "not connected: \(NighError.Cause.timedOut)"))
        #expect(cancelled.notes == before)
        listener.close()
    }

    /// The kernel reports the connection at once, so it is known before the call returns.
    @Test func `A connection that is cancelled in the turn of its start reports nothing`() {
        let place = Place()
        let server = Ground()
        server.listen(place.listen())
        let ground = Ground()
        let end = BareEnd(UnixTransport.socket())
        ground.run { ground in
            let connecting = UnixTransport.withAddress(place.name) {
                ConnectingSocket(end.descriptor, to: $0, timeout: .seconds(5), on: ground.loop) {
                    [unowned ground] _ in ground.note("told")
                }
            }
            connecting.cancel()
        }
        #expect(server.wait(for: "accepted"))
        ground.run { _ in }
        #expect(ground.notes == [])
    }

    /// Over IP, the kernel reports the outcome only later.
    @Test func `A connection over IP is reported when it is made or refused`() {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let listening = BareEnd(socket(AF_INET, kind, 0))
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                var size = socklen_t(MemoryLayout<sockaddr_in>.size)
                bind(listening.descriptor, $0, size)
                getsockname(listening.descriptor, $0, &size)
            }
        }
        let bytes = withUnsafeBytes(of: &address) { Array($0) }
        let ground = Ground()
        let ends = (0..<2).map { _ in BareEnd(socket(AF_INET, kind, 0)) }
        ground.connect(ends[0].descriptor, to: bytes)
        #expect(ground.wait(for: "not connected: \(NighError.Cause.refused)"))
        listen(listening.descriptor, 10)
        ground.connect(ends[1].descriptor, to: bytes)
        #expect(ground.wait(for: "connected"))
    }
}
