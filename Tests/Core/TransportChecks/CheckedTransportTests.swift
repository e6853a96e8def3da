import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Tests a checked transport by itself: what it passes on, and what it does once a rule is broken.
@Suite struct CheckedTransportTests {
    /// A scripted transport that is checked, started, advertising and browsing.
    private final class Bench {
        let loop = VirtualEventLoop()
        let transport = ScriptedTransport()
        let listener = Listener()
        let checked: CheckedTransport

        init(isStarted: Bool = true, callDepth: CallDepth = CallDepth()) {
            checked = CheckedTransport(transport, callDepth: callDepth)
            guard isStarted else { return }
            start()
        }

        func start() {
            checked.start(on: loop, events: listener)
            checked.advertise(ScriptedTransport.sighting.advertisement)
            checked.browse(ScriptedTransport.service)
        }

        func dial(_ number: UInt64, timeout: Duration = .seconds(10)) {
            checked.dial(
                ScriptedTransport.address("x"), as: DialID(number: number), timeout: timeout)
        }

        /// Opens a dialled pipe; returns it as the listener got it (if it was told of it), and the pipe behind it.
        func openPipe(_ number: UInt64 = 1) -> (checked: any Pipe, inner: ScriptedPipe) {
            dial(number)
            let pipe = ScriptedPipe(of: transport)
            transport.events?.pipeOpened(pipe, dial: DialID(number: number), by: transport)
            return (listener.pipes.last ?? pipe, pipe)
        }

        var rule: ContractRule? {
            if case .contractBroken(let rule, _)? = checked.breach?.cause { rule } else { nil }
        }

        func breakARule() {
            transport.events?.dialFailed(DialID(number: 99), error: ScriptedTransport.error(), by: transport)
        }
    }

    @Test
    func `Transports on one loop can share a call count: during a call to one, none may report an event`() {
        let calls = CallDepth()
        let first = CheckedTransport(ScriptedTransport(), callDepth: calls)
        let second = Bench(callDepth: calls)
        first.calling { second.transport.events?.listeningChanged([], by: second.transport) }
        #expect(second.rule == .toldInALaterTurn)
        let apart = Bench()
        first.calling { apart.transport.events?.listeningChanged([], by: apart.transport) }
        #expect(apart.rule == nil)
    }

    @Test func `Every event is forwarded in the same turn, with the checked transport's own name`() throws {
        let bench = Bench()
        let (pipe, inner) = bench.openPipe()
        inner.receive(3)
        var queue = ByteQueue()
        queue.append(ByteSlice([1, 2]))
        pipe.write(&queue)
        pipe.pauseReading()
        pipe.resumeReading()
        inner.handler?.pipeBecameWritable(inner)
        inner.handler?.pipeEnded(inner)
        inner.handler?.pipeClosed(inner, error: nil)
        bench.dial(2)
        bench.transport.events?.dialFailed(
            DialID(number: 2), error: ScriptedTransport.error(), by: bench.transport)
        #expect(bench.listener.log == ["opened", "received 3", "writable", "ended", "closed", "failed 2"])
        #expect(
            bench.transport.calls == [
                "start", "advertise", "browse", "dial 1", "pipe.start", "write", "pauseReading",
                "resumeReading", "dial 2",
            ])
        #expect(bench.listener.reporters.allSatisfy { $0 === bench.checked })
        #expect(bench.checked.breach == nil)
        #expect(bench.loop.pending == (0, 0), "nothing waits, not even for the dial's timeout")
    }

    @Test func `A broken rule withdraws everything that was reported, in a later turn and in order`() throws {
        let bench = Bench()
        let events = try #require(bench.transport.events)
        events.routeFound(ScriptedTransport.sighting, by: bench.transport)
        events.listeningChanged([ScriptedTransport.address("here")], by: bench.transport)
        let (pipe, _) = bench.openPipe()
        bench.dial(2)
        _ = bench.listener.takeLog()
        bench.breakARule()
        events.routeLost(ScriptedTransport.sighting.address, by: bench.transport)
        #expect(bench.listener.log.isEmpty)
        var queue = ByteQueue()
        queue.append(ByteSlice([1]))
        pipe.write(&queue)
        #expect(queue.isEmpty && pipe.writableBytes == 0)
        #expect(!bench.transport.calls.contains("write") && !bench.transport.calls.contains("shutdown"))

        try bench.loop.runQueued()
        #expect(
            bench.listener.takeLog() == ["lost somewhere", "listening 0", "down", "failed 2", "closed"])
        #expect(Set(bench.listener.errors) == Set([try #require(bench.checked.breach)]))
        #expect(bench.transport.calls.suffix(2) == ["close now", "shutdown"])
        #expect(bench.rule == .dialIsKnown)
        #expect(bench.loop.pending == (0, 0))
    }

    @Test func `After a breach the transport is not called, its events are ignored, and dials fail later`()
        throws
    {
        let bench = Bench()
        bench.breakARule()
        try bench.loop.runQueued()
        let breach = try #require(bench.checked.breach)
        let calls = bench.transport.calls
        _ = bench.listener.takeLog()
        bench.transport.events?.transportChanged(.up, by: bench.transport)
        bench.checked.advertise(ScriptedTransport.sighting.advertisement)
        bench.checked.browse(ScriptedTransport.service)
        bench.dial(3)
        bench.dial(4)
        bench.checked.cancelDial(DialID(number: 4))
        #expect(bench.listener.log.isEmpty)
        try bench.loop.runQueued()
        #expect(bench.listener.takeLog() == ["failed 3"])
        #expect(bench.listener.errors.last == breach)
        let lines = bench.checked.diagnose()
        #expect(lines.map(\.verdict) == [.fail] && lines[0].finding.contains("dial-is-known"))
        bench.checked.places(behind: ScriptedTransport.address("x")) { #expect($0 == .failure(breach)) }
        bench.checked.shutdown()
        #expect(bench.transport.calls == calls)
    }

    @Test
    func `After a shutdown in the same turn, or during the reports of a breach, nothing more is reported`()
        throws
    {
        let early = Bench()
        early.breakARule()
        early.checked.shutdown()
        try early.loop.runQueued()
        #expect(early.listener.log.isEmpty)
        #expect(early.transport.calls.filter { $0 == "shutdown" }.count == 1)

        let late = Bench()
        _ = late.openPipe()
        late.dial(2)
        _ = late.listener.takeLog()
        late.listener.reaction = { if $0 == "down" { late.checked.shutdown() } }
        late.breakARule()
        try late.loop.runQueued()
        #expect(late.listener.log == ["down"])
        #expect(late.transport.calls.filter { $0 == "shutdown" }.count == 1)
    }

    @Test func `A dial or pipe that ends while a breach is reported is reported once`() throws {
        let bench = Bench()
        let (pipe, _) = bench.openPipe()
        bench.dial(2)
        bench.dial(3)
        _ = bench.listener.takeLog()
        bench.listener.reaction = { event in
            switch event {
            case "down": bench.dial(4)
            case "failed 2":
                bench.checked.cancelDial(DialID(number: 3))
                pipe.close(.afterWriting)
            default: break
            }
        }
        bench.breakARule()
        try bench.loop.runQueued()
        #expect(bench.listener.log == ["down", "failed 2", "drained", "failed 4"])
    }

    /// A session that has closed a pipe and waits for this must not wait forever.
    @Test(arguments: [
        ("well", ["opened", "drained"]), ("twice", ["opened", "drained", "down"]),
        ("early", ["opened", "down", "drained"]), ("unasked", ["opened", "down", "closed"]),
        ("dropped", ["opened", "down"]),
    ])
    func `A pipe drains once, after it was closed and has written all; otherwise it breaks a rule`(
        _ fault: String, log: [String]
    ) throws {
        let bench = Bench()
        let (pipe, inner) = bench.openPipe()
        if fault == "early" { inner.passed.bytesWaiting = 1 }
        if fault != "unasked" { pipe.close(fault == "dropped" ? .now : .afterWriting) }
        if fault == "well" { pipe.close(.now) }
        inner.handler?.pipeDrained(inner)
        if fault == "twice" { inner.handler?.pipeDrained(inner) }
        #expect(bench.rule == (fault == "well" ? nil : .pipeDrainsOnce))
        try bench.loop.runQueued()
        #expect(bench.listener.log == log)
    }

    @Test func `A dial may end late, but not by more than the slack`() throws {
        let bench = Bench()
        bench.dial(1, timeout: .seconds(1))
        bench.dial(2, timeout: .seconds(1))
        bench.dial(3, timeout: .seconds(60))
        try bench.loop.run(for: .seconds(1) + CheckedTransport.dialSlack - .milliseconds(1))
        bench.transport.events?.dialFailed(
            DialID(number: 1), error: ScriptedTransport.error(), by: bench.transport)
        #expect(bench.checked.breach == nil)
        try bench.loop.run(for: .milliseconds(1))
        #expect(bench.rule == .dialEndsInTime)
        #expect(bench.listener.log == ["failed 1", "down", "failed 2", "failed 3"])
    }

    private static let callsOfTransports = [
        "start", "advertise", "updateAdvertisement", "stopAdvertising", "browse", "stopBrowsing", "dial 1",
        "cancelDial 1", "diagnose", "shutdown",
    ]
    private static let callsOfPipes = [
        "pipe.start", "write", "pauseReading", "resumeReading", "close now", "writableBytes", "counters",
    ]

    @Test(arguments: callsOfTransports + callsOfPipes)
    func `An event from inside any call is detected, and not forwarded`(_ call: String) throws {
        let bench = Bench(isStarted: false)
        let (checked, transport) = (bench.checked, bench.transport)
        transport.during = {
            guard $0 == call else { return }
            transport.events?.transportChanged(.up, by: transport)
        }
        bench.start()
        checked.updateAdvertisement(ScriptedTransport.sighting.advertisement)
        if checked.breach == nil {
            let (pipe, inner) = bench.openPipe()
            _ = pipe.counters
            _ = pipe.writableBytes
            pipe.pauseReading()
            pipe.resumeReading()
            var queue = ByteQueue()
            queue.append(ByteSlice([1]))
            pipe.write(&queue)
            inner.receive(1)
            pipe.close(.now)
        }
        _ = checked.diagnose()
        checked.cancelDial(DialID(number: 1))
        checked.stopAdvertising()
        checked.stopBrowsing()
        if call == "shutdown" { checked.shutdown() }
        try bench.loop.runQueued()
        #expect(bench.rule == .toldInALaterTurn)
        #expect(!bench.listener.log.contains("up"))
        #expect(bench.listener.log.contains("down") == (call != "shutdown"))
    }

    @Test func `A pipe that is reported to nobody is closed`() throws {
        let bench = Bench()
        bench.transport.events?.pipeOpened(
            ScriptedPipe(of: bench.transport), dial: DialID(number: 5), by: bench.transport)
        try bench.loop.runQueued()
        #expect(bench.listener.log == ["down"])
        #expect(bench.transport.calls.contains("close now"))
    }

    @Test func `After shutdown it retains nothing, although the wrapped transport retains a pipe`() {
        weak var listener: Listener?
        var kept: ScriptedPipe?
        do {
            let bench = Bench()
            kept = bench.openPipe().inner
            listener = bench.listener
            bench.checked.shutdown()
        }
        #expect(listener == nil)
        withExtendedLifetime(kept) {}
    }

    @Test func `A session wraps its transports if configured, and none twice`() {
        let loop = VirtualEventLoop()
        func transports(_ isOn: Bool, _ transport: any Transport) -> [any Transport] {
            var configuration = SessionConfiguration(service: "test", name: DisplayName(fitting: "x"))
            configuration.checksTransports = isOn
            return Session(
                configuration, identity: .ephemeral(seed: 1), transports: [transport], loop: loop
            ).driver.transports
        }
        let plain = ScriptedTransport()
        #expect(transports(false, plain)[0] === plain)
        #expect((transports(true, plain)[0] as? CheckedTransport)?.inner === plain)
        let checked = CheckedTransport(plain)
        #expect(transports(true, checked)[0] === checked)
    }
}
