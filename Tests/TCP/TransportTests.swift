import Glibc
import NighCore
import NighMemory
import NighTCP
import NighTestKit
import NighUV
import Synchronization
import Testing

/// Tests the transport with sockets that refuse, stay silent, reset the connection or close one direction.
struct TransportTests {
    /// A pipe that a neighbour dialled, and the plain socket at its other end.
    private func connected() throws -> (neighbour: Neighbour, socket: PlainSocket) {
        let listener = PlainSocket()
        listener.listen()
        let neighbour = Neighbour()
        neighbour.dial("tcp://127.0.0.1:\(listener.port)")
        let socket = PlainSocket(acceptedBy: listener)
        try #require(neighbour.wait { !$0.dialled.isEmpty })
        return (neighbour, socket)
    }

    /// Without the limit, a client that opens connections and never closes one could use up a
    /// session's descriptors while they linger.
    @Test func closedPipesThatTheOtherSideNeverEndsAreBounded() throws {
        let host = Neighbour()
        host.advertise()
        try #require(host.wait { !$0.listening.isEmpty })
        let port = try #require(UInt16(host.listening[0].value.split(separator: ":").last ?? ""))
        var sockets: [PlainSocket] = []
        for count in 1...300 {
            sockets.append(PlainSocket(connectedTo: port))
            try #require(host.wait { $0.inbound.count == count })
        }
        // At once, because a closed pipe lingers for 10 s only.
        host.call { host in for pipe in host.inbound { pipe.close(.afterWriting) } }
        let open = host.call { $0.transport.diagnose().first { $0.subject == "pipes" }?.finding }
        #expect(open == "256 open")
        // The oldest were closed at once, but still without a reset.
        #expect(sockets[0].read(1).isEmpty)
        host.shutdown()
    }

    // MARK: Dialling

    @Test func aRefusedDialReportsTheAddressAndAdvice() throws {
        let nobody = PlainSocket()
        let neighbour = Neighbour()
        neighbour.dial("tcp://127.0.0.1:\(nobody.port)")
        try #require(neighbour.wait { !$0.failures.isEmpty })
        let error = neighbour.failures[0]
        #expect(error.cause == .refused)
        #expect(
            "\(error)" == "connecting to 127.0.0.1:\(nobody.port) over tcp: nobody listens there; "
                + "is the program running there, and is \(nobody.port) its port?")
        neighbour.shutdown()
    }

    @Test func aDialThatTimesOutReportsAdvice() throws {
        let silent = SilentPort()
        let neighbour = Neighbour()
        neighbour.dial("tcp://127.0.0.1:\(silent.port)", timeout: .milliseconds(50))
        try #require(neighbour.wait { !$0.failures.isEmpty })
        #expect(neighbour.failures[0].cause == .timedOut)
        #expect(neighbour.failures[0].advice?.contains("firewall") == true)
        neighbour.shutdown()
    }

    @Test func aNameIsLookedUpAndAllItsAddressesAreTried() throws {
        let listener = PlainSocket()
        listener.listen()
        let neighbour = Neighbour()
        // Usually both ::1 and 127.0.0.1, and only the latter has a listener.
        neighbour.dial("tcp:host=localhost,port=\(listener.port)")
        try #require(neighbour.wait { !$0.dialled.isEmpty })
        #expect(neighbour.failures.isEmpty)
        neighbour.shutdown()
    }

    /// Runs in a process of its own, because otherwise no other test could start a thread meanwhile.
    @Test func aDialFailsIfNoThreadCanResolveTheName() async {
        await #expect(processExitsWith: .success) {
            let neighbour = Neighbour()
            ResourceLimits.preventThreads()
            neighbour.dial("tcp://localhost:4000")
            #expect(neighbour.wait { !$0.failures.isEmpty })
            #expect(neighbour.failures.first?.stage == .connecting)
            #expect(neighbour.failures.first?.advice?.contains("ulimit -u") == true)
        }
    }

    @Test func anUnknownHostNameIsReported() throws {
        let neighbour = Neighbour()
        neighbour.dial("tcp://no-such-host.invalid:4000")
        try #require(neighbour.wait { !$0.failures.isEmpty })
        #expect("\(neighbour.failures[0])".contains("no-such-host.invalid"))
        #expect(neighbour.failures[0].advice != nil)
        neighbour.shutdown()
    }

    /// Each of these places can be dialled by itself.
    @Test func anAddressResolvesToTheAddressesThatADialTries() throws {
        let neighbour = Neighbour()
        let results = Mutex<[Result<[TransportAddress], NighError>]>([])
        func ask(_ text: String) {
            let address = TransportAddress(scheme: "tcp", value: text)
            neighbour.call { neighbour in
                neighbour.transport.places(behind: address) { result in
                    neighbour.monitor.change { results.withLock { $0.append(result) } }
                }
            }
        }
        ask("192.168.1.7:4000")
        ask("192.168.1.7:none")
        ask("no-such-host.invalid:4000")
        try #require(neighbour.wait { _ in results.withLock { $0.count == 3 } })
        let outcomes = results.withLock(\.self)
        #expect(try outcomes[0].get() == [TransportAddress(scheme: "tcp", value: "192.168.1.7:4000")])
        #expect(throws: NighError.self) { try outcomes[1].get() }
        #expect(throws: NighError.self) { try outcomes[2].get() }
        neighbour.shutdown()
    }

    @Test func anAddressOfAnotherTransportIsAFailedDial() throws {
        let neighbour = Neighbour()
        neighbour.dial("memory://table-1")
        try #require(neighbour.wait { !$0.failures.isEmpty })
        #expect("\(neighbour.failures[0])".contains("memory://table-1"))
        neighbour.shutdown()
    }

    @Test func aListenerAcceptsIPv4AndIPv6() throws {
        let host = Neighbour()
        host.advertise()
        try #require(host.wait { !$0.listening.isEmpty })
        let ports = host.listening.map { $0.value.split(separator: ":").last.map(String.init) }
        let port = try #require(ports.first ?? nil)
        let guest = Neighbour()
        guest.dial("tcp://127.0.0.1:\(port)")
        guest.dial("tcp://[::1]:\(port)")
        try #require(guest.wait { $0.dialled.count + $0.failures.count == 2 })
        #expect(guest.failures.isEmpty)
        try #require(host.wait { $0.inbound.count == 2 })
        let remote = host.call { $0.inbound.compactMap(\.remoteAddress?.value) }
        #expect(remote.contains { $0.hasPrefix("127.0.0.1:") })
        #expect(remote.contains { $0.hasPrefix("[::1]:") })
        host.shutdown()
        guest.shutdown()
    }

    /// The session dials, and only while it browses.
    @Test func knownAddressesAreReportedWhileBrowsing() {
        let addresses = ["10.0.0.1:4000", "puma.local:1"].map { TransportAddress(scheme: "tcp", value: $0) }
        let neighbour = Neighbour(TCPOptions(interface: "lo", discovery: .off, knownAddresses: addresses))
        neighbour.call { neighbour in
            neighbour.transport.browse("tests")
            neighbour.transport.stopBrowsing()
        }
        #expect(neighbour.call { $0.known }.isEmpty)
        for _ in 0..<2 {
            neighbour.call { $0.transport.browse("tests") }
            neighbour.call { $0.transport.stopBrowsing() }
        }
        #expect(neighbour.call { $0.known } == addresses + addresses)
        neighbour.shutdown()
    }

    // MARK: Listening

    @Test func aPortInUseIsReportedAndUsedOnceItIsFree() throws {
        let taken = PlainSocket()
        taken.listen()
        let neighbour = Neighbour(TCPOptions(port: taken.port, interface: "lo", discovery: .off))
        neighbour.advertise()
        try #require(neighbour.wait { !$0.advertisingFailures.isEmpty })
        let error = neighbour.advertisingFailures[0]
        #expect("\(error)".contains("port \(taken.port) is in use"))
        #expect(neighbour.call { $0.transport.diagnose() }.contains { $0.verdict == .fail })
        taken.free()
        try #require(neighbour.wait { !$0.listening.isEmpty })
        #expect(neighbour.advertisingFailures.count == 1)
        #expect(!neighbour.call { $0.transport.diagnose() }.contains { $0.verdict == .fail })
        neighbour.shutdown()
    }

    @Test func aMissingInterfaceIsReported() throws {
        let neighbour = Neighbour(TCPOptions(interface: "nowhere0", discovery: .off))
        neighbour.advertise()
        try #require(neighbour.wait { !$0.conditions.isEmpty && !$0.advertisingFailures.isEmpty })
        guard case .down(let error) = neighbour.conditions[0] else {
            Issue.record("\(neighbour.conditions)")
            return
        }
        #expect("\(error)".contains("nowhere0"))
        #expect("\(neighbour.advertisingFailures[0])".contains("nowhere0"))
        neighbour.shutdown()
    }

    @Test func aLoopWithoutSocketsIsReported() async throws {
        let loop = ThreadEventLoop()
        defer { loop.shutdown() }
        let session = Session(
            SessionConfiguration(service: "tests", name: DisplayName(fitting: "Puma")),
            identity: .ephemeral(),
            transports: [TCPTransport()], loop: loop)
        session.start()
        for await event in session.events {
            guard case .transportDown(_, let error) = event else { continue }
            #expect("\(error)".contains("give the session a UVEventLoop"))
            break
        }
        let error = await #expect(throws: NighError.self) {
            try await session.invite(at: TransportAddress(scheme: "tcp", value: "127.0.0.1:1"))
        }
        #expect("\(try #require(error))".contains("UVEventLoop"))
        await session.close()
    }

    // MARK: Kinds of endings

    @Test func anEndOfWritingLeavesTheOtherDirection() throws {
        let (neighbour, socket) = try connected()
        _ = Glibc.send(socket.descriptor, "bye", 3, 0)
        Glibc.shutdown(socket.descriptor, Int32(SHUT_WR))
        try #require(neighbour.wait { $0.ended == 1 })
        #expect(neighbour.received == Array("bye".utf8))
        let bytes = ByteSlice(Array("still here".utf8))
        neighbour.call { $0.write(bytes) }
        #expect(socket.read(10) == Array("still here".utf8))
        #expect(neighbour.closed.isEmpty)
        neighbour.shutdown()
    }

    @Test func aResetIsReportedAsReset() throws {
        let (neighbour, socket) = try connected()
        socket.reset()
        try #require(neighbour.wait { !$0.closed.isEmpty })
        #expect(neighbour.closed[0]?.cause == .reset)
        #expect(neighbour.ended == 0)
        neighbour.shutdown()
    }

    /// If the reset were reported first, what the other side sent before it would be lost.
    @Test func aPausedPipeReportsAResetAfterTheBytesBeforeIt() throws {
        let (neighbour, socket) = try connected()
        neighbour.call { $0.dialled[0].pauseReading() }
        _ = Glibc.send(socket.descriptor, "bye", 3, 0)
        socket.reset()
        neighbour.call { $0.dialled[0].resumeReading() }
        // The reset may be reported as an end or as an error. What counts is that the bytes come first.
        try #require(neighbour.wait { $0.ended + $0.closed.count > 0 })
        #expect(neighbour.received == Array("bye".utf8))
        neighbour.shutdown()
    }

    /// Writing to a connection that the other side has closed kills a process that does not handle SIGPIPE.
    @Test func writingToAClosedConnectionIsAnErrorWithoutASignal() throws {
        let (neighbour, socket) = try connected()
        neighbour.call { $0.dialled[0].pauseReading() }
        socket.reset()
        // More than the system takes. On a busy machine the reset may still be on its way, and a pipe that does not
        // read and has nothing left to write would not learn of it.
        let bytes = ByteSlice([UInt8](repeating: 7, count: 8_000_000))
        for _ in 0..<3 {
            neighbour.call { $0.write(bytes) }
        }
        try #require(neighbour.wait { !$0.closed.isEmpty })
        #expect(neighbour.closed[0]?.cause == .reset)
        neighbour.shutdown()
    }

    /// When a write fails, the last bytes of the other side and its reset may both be there already.
    @Test func bytesReceivedBeforeABreakAreRead() throws {
        let (neighbour, socket) = try connected()
        let words = [UInt8](repeating: 1, count: 50_000)
        let reply = ByteSlice([UInt8](repeating: 2, count: 1_000_000))
        // While the loop is busy, bytes arrive and then both directions end. Then the loop writes.
        neighbour.call { neighbour in
            _ = words.withUnsafeBytes { Glibc.send(socket.descriptor, $0.baseAddress, $0.count, 0) }
            Glibc.shutdown(socket.descriptor, Int32(SHUT_RDWR))
            neighbour.write(reply)
            neighbour.write(reply)
        }
        try #require(neighbour.wait { $0.ended + $0.closed.count > 0 })
        #expect(neighbour.received.count == words.count)
        neighbour.shutdown()
    }

    @Test func aSlowReaderReceivesEverythingWrittenBeforeTheClose() throws {
        let (neighbour, socket) = try connected()
        let bytes = ByteSlice([UInt8](repeating: 3, count: 8_000_000))
        // Unread bytes at the closing end would turn its close into a reset.
        _ = Glibc.send(socket.descriptor, "unread", 6, 0)
        neighbour.call { neighbour in
            neighbour.write(bytes)
            neighbour.dialled[0].close(.afterWriting)
        }
        #expect(socket.read(9_000_000).count == 8_000_000)
        neighbour.shutdown()
    }
}
