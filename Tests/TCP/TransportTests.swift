import Glibc
import NighCore
import NighTCP
import NighTestKit
import Testing

/// Tests the transport with sockets that refuse, stay silent or reset the connection. The conformance suite checks what
/// all transports have in common, and the tests of `SocketPipe` check how a pipe over a socket ends.
struct TransportTests {
    // MARK: Dialling

    /// Opens no connection to `address`, and returns the error.
    private func failure(_ address: String, timeout: Duration = .seconds(10)) throws -> NighError {
        let transport = RecordedTransport()
        transport.dial(address, timeout: timeout)
        try #require(transport.wait { !$0.dialFailures.isEmpty })
        #expect(transport.recorder.log.count == 1)
        return transport.recorder.dialFailures[0]
    }

    @Test func `A failed dial is reported with the address, the cause and advice`() throws {
        let nobody = PlainSocket()
        let refused = try failure("tcp://127.0.0.1:\(nobody.port)")
        #expect(refused.cause == .refused)
        #expect(
            "\(refused)" == "connecting to 127.0.0.1:\(nobody.port) over tcp: nobody listens there; "
                + "is the program running there, and is \(nobody.port) its port?")
        let silent = SilentPort()
        let late = try failure("tcp://127.0.0.1:\(silent.port)", timeout: .milliseconds(50))
        #expect(late.cause == .timedOut && late.advice?.contains("firewall") == true)
        let unknown = try failure("tcp://no-such-host.invalid:4000")
        #expect("\(unknown)".contains("no-such-host.invalid") && unknown.advice != nil)
        let elsewhere = try failure("memory://table-1")
        #expect("\(elsewhere)".contains("memory://table-1"))
    }

    /// Runs in a process of its own, because otherwise no other test could start a thread meanwhile.
    @Test func `A dial fails if no thread can be started to resolve the name`() async {
        await #expect(processExitsWith: .success) {
            let transport = RecordedTransport()
            ResourceLimits.preventThreads()
            transport.dial("tcp://localhost:4000")
            #expect(transport.wait { !$0.dialFailures.isEmpty })
            #expect(transport.recorder.dialFailures.first?.stage == .connecting)
            #expect(transport.recorder.dialFailures.first?.advice?.contains("ulimit -u") == true)
        }
    }

    @Test func `A name is dialled`() throws {
        let listener = PlainSocket()
        listener.listen()
        let transport = RecordedTransport()
        transport.dial("tcp:host=localhost,port=\(listener.port)")
        try #require(transport.wait { !$0.events.isEmpty })
        #expect(transport.recorder.dialFailures.isEmpty)
    }

    @Test func `The places behind an address are the addresses that a dial tries`() throws {
        let transport = RecordedTransport()
        func places(_ value: String) throws -> [TransportAddress] {
            let address = TransportAddress(scheme: "tcp", value: value)
            let result: Result<[TransportAddress], NighError> = try waitForReply { reply in
                transport.call { $0.places(behind: address, found: reply) }
            }
            return try result.get()
        }
        #expect(try places("192.168.1.7:4000").map(\.value) == ["192.168.1.7:4000"])
        #expect(throws: NighError.self) { try places("192.168.1.7:none") }
        #expect(throws: NighError.self) { try places("no-such-host.invalid:4000") }
    }

    @Test func `Known addresses are reported in each search, and only while it lasts`() {
        let addresses = ["10.0.0.1:4000", "puma.local:1"].map { TransportAddress(scheme: "tcp", value: $0) }
        let transport = RecordedTransport(
            TCPOptions(interface: "lo", discovery: .off, knownAddresses: addresses))
        transport.call {
            $0.browse("tests")
            $0.stopBrowsing()
        }
        transport.call { _ in }
        #expect(transport.recorder.log == [])
        for _ in 0..<2 {
            transport.call { $0.browse("tests") }
            transport.call { $0.stopBrowsing() }
        }
        let known = addresses.map { "known \($0)" }
        #expect(transport.recorder.log == known + known)
    }

    // MARK: Listening

    @Test func `A listener accepts IPv4 and IPv6`() throws {
        let host = RecordedTransport()
        host.advertise()
        let port = try host.port()
        for name in ["127.0.0.1", "[::1]"] {
            let guest = RecordedTransport()
            guest.dial("tcp://\(name):\(port)")
            try #require(guest.wait { !$0.events.isEmpty })
            #expect(guest.recorder.dialFailures.isEmpty)
        }
        try #require(host.wait { $0.pipes.count == 2 })
        let remote = host.call { [pipes = host.inbound] _ in pipes.map { "\($0.pipe.remoteAddress!)" } }
        #expect(remote[0].hasPrefix("tcp://127.0.0.1:") && remote[1].hasPrefix("tcp://[::1]:"))
    }

    @Test func `A port in use is reported once, and used as soon as it is free`() throws {
        let taken = PlainSocket()
        taken.listen()
        let transport = RecordedTransport(TCPOptions(port: taken.port, interface: "lo", discovery: .off))
        func isFailing() -> Bool { transport.call { $0.diagnose() }.contains { $0.verdict == .fail } }
        transport.advertise()
        try #require(transport.wait { !$0.events.isEmpty })
        #expect(transport.recorder.log[0].contains("port \(taken.port) is in use"))
        #expect(isFailing())
        taken.free()
        try #require(transport.wait { !$0.listening.isEmpty })
        #expect(transport.recorder.log.count { $0.hasPrefix("not advertising") } == 1)
        #expect(!isFailing())
    }

    @Test func `A missing interface is reported`() throws {
        let transport = RecordedTransport(TCPOptions(interface: "nowhere0", discovery: .off))
        transport.advertise()
        for event in ["down", "not advertising"] {
            let isReported = transport.wait {
                $0.log.contains { $0.hasPrefix(event) && $0.contains("nowhere0") }
            }
            #expect(isReported, "\(transport.recorder.log)")
        }
    }

    /// Without the limit, a client that opens connections and never closes one could use up a session's descriptors
    /// while they linger.
    @Test func `The number of closed pipes that the other side never ends is limited`() throws {
        let host = RecordedTransport()
        host.advertise()
        let port = try host.port()
        var sockets: [PlainSocket] = []
        for count in 1...300 {
            sockets.append(PlainSocket(connectedTo: port))
            try #require(host.wait { $0.pipes.count == count })
        }
        // At once, because a closed pipe lingers for 10 s only.
        host.call { [pipes = host.inbound] _ in for recorder in pipes { recorder.pipe.close(.afterWriting) } }
        #expect(host.call { $0.diagnose().first { $0.subject == "pipes" }?.finding } == "256 open")
        // The oldest were closed at once, but still without a reset.
        #expect(sockets[0].read(1).isEmpty)
    }

    @Test func `A loop without sockets is reported`() throws {
        let loop = VirtualEventLoop()
        let transport = RecordedTransport(TCPTransport(), on: loop)
        transport.dial("tcp://127.0.0.1:1")
        try loop.run(for: .seconds(1))
        #expect(transport.recorder.log.map { $0.prefix(4) } == ["down", "fail"])
        #expect(transport.recorder.log[0].contains("give the session a UVEventLoop"))
        #expect(transport.recorder.dialFailures[0].advice == "give the session a UVEventLoop")
    }

    // MARK: Endings

    /// A pipe that a transport dialled, and the plain socket at its other end.
    private struct Connection {
        let transport = RecordedTransport()
        let recorder: PipeRecorder
        let socket: PlainSocket

        init() throws {
            let listener = PlainSocket()
            listener.listen()
            transport.dial("tcp://127.0.0.1:\(listener.port)")
            socket = PlainSocket(acceptedBy: listener)
            try #require(transport.wait { !$0.pipes.isEmpty })
            recorder = transport.dialled[0]
        }

        /// Runs `body` on the loop of the pipe.
        func call(_ body: @escaping (PipeRecorder) -> Void) {
            transport.call { [recorder] _ in body(recorder) }
        }

        func waitForEnd() throws { try #require(transport.wait { _ in !recorder.log.isEmpty }) }
    }

    @Test func `A reset is reported as such`() throws {
        let connection = try Connection()
        connection.socket.reset()
        try connection.waitForEnd()
        #expect(connection.recorder.log.count == 1 && connection.recorder.error?.cause == .reset)
    }

    /// If the reset were reported first, what the other side sent before it would be lost.
    @Test func `A paused pipe reports a reset after the bytes before it`() throws {
        let connection = try Connection()
        connection.call { $0.pipe.pauseReading() }
        connection.socket.write(Array("bye".utf8))
        connection.socket.reset()
        connection.call { $0.pipe.resumeReading() }
        // The reset may be reported as an end or as an error. What counts is that the bytes come first.
        try connection.waitForEnd()
        #expect(connection.recorder.received == Array("bye".utf8))
    }

    /// Writing to a connection that the other side has closed kills a process that does not handle SIGPIPE.
    @Test func `Writing to a closed connection is an error, and sends no signal`() throws {
        let connection = try Connection()
        connection.call { $0.pipe.pauseReading() }
        connection.socket.reset()
        // More than the system takes. On a busy machine the reset may still be on its way, and a pipe that does not
        // read and has nothing left to write would not learn of it.
        for _ in 0..<3 { connection.call { $0.send([UInt8](repeating: 7, count: 8_000_000)) } }
        try connection.waitForEnd()
        #expect(connection.recorder.error?.cause == .reset)
    }

    @Test func `A slow reader receives everything that was written before the close`() throws {
        let connection = try Connection()
        // Unread bytes at the closing end would turn its close into a reset.
        connection.socket.write(Array("unread".utf8))
        connection.call {
            $0.send([UInt8](repeating: 3, count: 8_000_000))
            $0.pipe.close(.afterWriting)
        }
        #expect(connection.socket.read(9_000_000).count == 8_000_000)
    }
}
