import Glibc
import NighCore
import NighTestKit
import NighUV
import Testing

/// Tests `SocketListener` and `ConnectingSocket` over Unix sockets.
@Suite struct SocketListenerTests {
    /// Records what is reported on a loop. `@unchecked Sendable`: guarded by its monitor; the rest is confined to the
    /// loop.
    private final class Notes: @unchecked Sendable {
        let loop = UVEventLoop()
        let monitor = Monitor()
        private var recorded: [String] = []
        var listener: SocketListener?
        var connecting: ConnectingSocket?

        deinit { loop.shutdown() }

        var all: [String] { monitor.read { recorded } }

        func add(_ note: String) { monitor.change { recorded.append(note) } }

        func wait(for note: String) -> Bool {
            monitor.wait(within: .seconds(20)) { recorded.contains(note) }
        }

        func wait(for count: Int, of note: String) -> Bool {
            monitor.wait(within: .seconds(20)) { recorded.count { $0 == note } >= count }
        }

        /// Runs `body` on the loop and waits for it.
        func run(_ body: @escaping @Sendable (Notes) -> Void) {
            let done = Done()
            loop.execute { [self] in
                body(self)
                monitor.change { done.isSet = true }
            }
            precondition(monitor.wait(within: .seconds(20)) { done.isSet }, "a call blocks the loop")
        }

        private final class Done: @unchecked Sendable {
            var isSet = false
        }

        /// Listens; by default, closes every accepted connection.
        func listen(_ descriptor: Int32, whenAccepted: @escaping @Sendable (Int32) -> Void = { close($0) }) {
            run { notes in
                notes.listener = try? SocketListener(descriptor: descriptor, on: notes.loop) {
                    [unowned notes] in
                    whenAccepted($0)
                    notes.add("accepted")
                } failed: { [unowned notes] in
                    notes.add("failed: \($0.cause)")
                }
            }
            precondition(listener != nil, "cannot listen")
        }

        /// Starts to connect, and notes the outcome and the end of the call.
        func connect(_ descriptor: Int32, to name: String, timeout: Duration = .seconds(20)) {
            run { notes in
                notes.connecting = UnixTransport.withAddress(name) {
                    ConnectingSocket(descriptor, to: $0, timeout: timeout, on: notes.loop) {
                        [unowned notes] in
                        switch $0 {
                        case .success: notes.add("connected")
                        case .failure(let fault): notes.add("not connected: \(fault.cause)")
                        }
                    }
                }
                notes.add("called")
            }
        }
    }

    private static func newName() -> String { "nigh-test-\(UInt64.random(in: .min ... .max))" }

    /// A socket that is connected to `name` by a blocking call.
    private static func caller(at name: String) -> BareEnd? {
        let end = BareEnd(UnixTransport.socket())
        let status = UnixTransport.withAddress(name) {
            connect(
                end.descriptor, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
        }
        return status == 0 ? end : nil
    }

    // MARK: Listening

    @Test("All callers are accepted, non-blocking and close-on-exec, even if they come at once")
    func takesAllIn() {
        let name = Self.newName()
        let descriptor = UnixTransport.listeningSocket(at: name, backlog: 100)
        let callers = (0..<50).compactMap { _ in Self.caller(at: name) }
        #expect(callers.count == 50)
        let notes = Notes()
        notes.listen(descriptor) { caller in
            let isWell = fcntl(caller, F_GETFL) & O_NONBLOCK != 0 && fcntl(caller, F_GETFD) == FD_CLOEXEC
            close(caller)
            if !isWell { notes.add("with the wrong flags") }
        }
        #expect(notes.wait(for: 50, of: "accepted"))
        #expect(notes.all.allSatisfy { $0 == "accepted" })
    }

    @Test("One wake-up accepts a limited number, so that other work on the loop has its turn")
    func takesInShares() {
        let name = Self.newName()
        let descriptor = UnixTransport.listeningSocket(at: name, backlog: 100)
        let callers = (0..<80).compactMap { _ in Self.caller(at: name) }
        let notes = Notes()
        let sockets = SocketPair()
        let end = PipeEnd(sockets.near, on: notes.loop) { _ in notes.add("read") }
        notes.listen(descriptor) { caller in
            close(caller)
            if notes.all.isEmpty { sockets.far.write([1]) }
        }
        #expect(notes.wait(for: callers.count, of: "accepted"))
        let turn = notes.all.firstIndex(of: "read") ?? .max
        #expect(turn < callers.count / 2)
        end.finish()
    }

    @Test("A closed listener accepts nobody, even if it was closed inside its callback")
    func closesSurviveARoundTrip() {
        let name = Self.newName()
        let descriptor = UnixTransport.listeningSocket(at: name, backlog: 10)
        let socket = SocketIdentity(descriptor)
        let callers = (0..<5).compactMap { _ in Self.caller(at: name) }
        let notes = Notes()
        notes.listen(descriptor) {
            close($0)
            notes.listener?.close()
        }
        #expect(notes.wait(for: "accepted"))
        #expect(callers.last?.isAtEnd == false)
        notes.run { $0.listener?.close() }
        #expect(notes.all == ["accepted"])
        #expect(!socket.isOpen)
        // A program that is just being started can still have the socket for a moment, but nobody accepts there.
        #expect(Self.caller(at: name)?.isAtEnd != true)
    }

    @Test("A listener that is released closes its socket")
    func isReleased() {
        let name = Self.newName()
        let descriptor = UnixTransport.listeningSocket(at: name, backlog: 10)
        let socket = SocketIdentity(descriptor)
        let notes = Notes()
        notes.listen(descriptor)
        notes.run { $0.listener = nil }
        #expect(!socket.isOpen)
    }

    @Test("A descriptor that cannot be polled is refused, and its caller keeps it")
    func refused() {
        let notes = Notes()
        let file = open("/proc/self/exe", O_RDONLY)
        let socket = SocketIdentity(file)
        for descriptor in [file, -1] {
            notes.run { notes in
                do throws(SocketFault) {
                    notes.listener = try SocketListener(descriptor: descriptor, on: notes.loop) { _ in
                    } failed: { _ in
                    }
                } catch {
                    notes.add("refused")
                }
            }
        }
        #expect(notes.all == ["refused", "refused"])
        #expect(socket.isOpen)
        close(file)
    }

    /// Runs in a process of its own, because the shortage of descriptors affects a whole process.
    @Test("Running out of descriptors is reported once, does not spin, and all callers are accepted later")
    func withoutDescriptors() async {
        await #expect(processExitsWith: .success) {
            let name = SocketListenerTests.newName()
            let notes = Notes()
            notes.listen(UnixTransport.listeningSocket(at: name, backlog: 10))
            // A client can connect with a descriptor that exists already. Accepting the connection needs one more.
            let callers = (0..<2).map { _ in UnixTransport.socket() }
            // One for the listener, and one for the test's own wait, which opens /proc/loadavg.
            let spares = (0..<2).map { _ in dup(STDERR_FILENO) }
            ResourceLimits.limitDescriptors()
            for caller in callers {
                let status = UnixTransport.withAddress(name) {
                    connect(
                        caller, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
                }
                #expect(status == 0)
            }
            let words = "failed: \(SocketFault(EMFILE).cause)"
            #expect(notes.wait(for: words))
            #expect(SocketFault(EMFILE).advice?.contains("ulimit -n") == true)
            let before = clock()
            // Longer than the pause before the next attempt.
            let later = Later(notes.loop, .milliseconds(250))
            #expect(later.wait())
            #expect(Double(clock() - before) / Double(CLOCKS_PER_SEC) < 0.1)
            #expect(notes.all == [words])
            for spare in spares { close(spare) }
            #expect(notes.wait(for: 2, of: "accepted"))
            #expect(notes.all == [words, "accepted", "accepted"])
        }
    }

    // MARK: Connecting

    @Test("A connection is reported once, in a later turn, and its socket may go to a pipe at once")
    func connects() throws {
        let name = Self.newName()
        let server = Notes()
        server.listen(UnixTransport.listeningSocket(at: name, backlog: 10)) {
            _ = Glibc.write($0, "hello", 5)
            close($0)
        }
        let notes = Notes()
        let descriptor = UnixTransport.socket()
        notes.connect(descriptor, to: name)
        #expect(notes.wait(for: "connected"))
        #expect(notes.all == ["called", "connected"])
        let end = PipeEnd(descriptor, on: notes.loop)
        #expect(end.wait { end.isFinished })
        #expect(end.bytes == Array("hello".utf8))
        #expect(server.wait(for: "accepted"))
    }

    @Test("A refused connection is also reported in a later turn; the caller keeps the socket")
    func isRefused() {
        let notes = Notes()
        let descriptor = UnixTransport.socket()
        let socket = SocketIdentity(descriptor)
        notes.connect(descriptor, to: Self.newName())
        #expect(notes.wait(for: "not connected: \(NighError.Cause.refused)"))
        #expect(notes.all.first == "called")
        #expect(socket.isOpen)
        close(descriptor)
    }

    @Test("An invalid address fails like any other")
    func noAddress() {
        let notes = Notes()
        let sockets = SocketPair()
        notes.run { notes in
            notes.connecting = ConnectingSocket(
                sockets.near, to: UnsafeRawBufferPointer(start: nil, count: 0), timeout: .seconds(5),
                on: notes.loop
            ) { [unowned notes] in
                if case .failure(SocketFault(EINVAL)) = $0 { notes.add("invalid") }
            }
        }
        #expect(notes.wait(for: "invalid"))
        close(sockets.near)
    }

    @Test("A connection to a listener with a full backlog is retried until there is room")
    func waitsForRoom() {
        let name = Self.newName()
        let descriptor = UnixTransport.listeningSocket(at: name, backlog: 0)
        let first = Self.caller(at: name)
        #expect(first != nil)
        let notes = Notes()
        let late = UnixTransport.socket()
        notes.connect(late, to: name)
        // So the attempt was deferred at least once.
        #expect(notes.all == ["called"])
        let server = Notes()
        server.listen(descriptor)
        #expect(notes.wait(for: "connected"))
        #expect(server.wait(for: 2, of: "accepted"))
        close(late)
    }

    @Test("A connection that takes too long fails; one that is cancelled before reports nothing")
    func endsInTime() {
        let name = Self.newName()
        let listener = BareEnd(UnixTransport.listeningSocket(at: name, backlog: 0))
        let first = Self.caller(at: name)
        #expect(first != nil)
        let cancelled = Notes()
        let notes = Notes()
        let descriptors = (0..<2).map { _ in UnixTransport.socket() }
        cancelled.connect(descriptors[0], to: name, timeout: .milliseconds(1))
        cancelled.run {
            $0.connecting?.cancel()
            $0.connecting?.cancel()
        }
        let before = cancelled.all
        notes.connect(descriptors[1], to: name, timeout: .milliseconds(20))
        #expect(notes.wait(for: "not connected: \(NighError.Cause.timedOut)"))
        #expect(cancelled.all == before)
        for descriptor in descriptors { close(descriptor) }
        listener.close()
    }

    /// The kernel reports the connection at once, so it is known before the call returns.
    @Test("A connection that is cancelled in the turn of its start reports nothing")
    func cancelledAtOnce() {
        let name = Self.newName()
        let server = Notes()
        server.listen(UnixTransport.listeningSocket(at: name, backlog: 10))
        let notes = Notes()
        let descriptor = UnixTransport.socket()
        notes.run { notes in
            let connecting = UnixTransport.withAddress(name) {
                ConnectingSocket(descriptor, to: $0, timeout: .seconds(5), on: notes.loop) {
                    [unowned notes] _ in notes.add("told")
                }
            }
            connecting.cancel()
        }
        #expect(server.wait(for: "accepted"))
        notes.run { _ in }
        #expect(notes.all == [])
        close(descriptor)
    }

    /// Over IP, the kernel reports the outcome only later.
    @Test("A connection that takes time may complete later")
    func takesTime() {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let listening = socket(AF_INET, kind, 0)
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                var size = socklen_t(MemoryLayout<sockaddr_in>.size)
                bind(listening, $0, size)
                getsockname(listening, $0, &size)
            }
        }
        let notes = Notes()
        func connect() -> Int32 {
            let descriptor = socket(AF_INET, kind, 0)
            let bytes = withUnsafeBytes(of: &address) { Array($0) }
            notes.run { notes in
                notes.connecting = bytes.withUnsafeBytes {
                    ConnectingSocket(descriptor, to: $0, timeout: .seconds(20), on: notes.loop) {
                        [unowned notes] in
                        switch $0 {
                        case .success: notes.add("connected")
                        case .failure(let fault): notes.add("not connected: \(fault.cause)")
                        }
                    }
                }
            }
            return descriptor
        }
        let refused = connect()
        #expect(notes.wait(for: "not connected: \(NighError.Cause.refused)"))
        listen(listening, 10)
        let connected = connect()
        #expect(notes.wait(for: "connected"))
        for descriptor in [listening, refused, connected] { close(descriptor) }
    }
}
