import Glibc
import NighTestKit
import NighUV

@testable import NighCore
@testable import NighTCP
@testable import NighWeb

/// A transport for guests on the loopback interface, on a loop that runs by itself, and the pipes that guests open.
///
/// `@unchecked Sendable`: the monitor guards what was recorded.
final class Server: @unchecked Sendable {
    let loop = UVEventLoop()
    let transport: WebTransport
    private let monitor = Monitor()
    private var recordedPipes: [ServedPipe] = []
    private var recordedListening: [TransportAddress] = []
    private var recordedFailures: [NighError] = []
    /// How pipes treat the bytes that they receive.
    private let habit: ServedPipe.Habit

    static let page = WebPage([
        "/": WebPage.File(type: "text/html; charset=utf-8", bytes: ByteSlice(Array("<p>Welcome".utf8))),
        "/style.css": WebPage.File(type: "text/css", bytes: ByteSlice(Array("p {}".utf8))),
    ])

    init(
        echoes: Bool = false, closes: Bool = false, page: WebPage = Server.page, times: WebTimes = WebTimes(),
        adjust: (inout WebOptions) -> Void = { _ in }
    ) {
        var options = WebOptions()
        options.interface = "lo"
        options.port = 0
        adjust(&options)
        habit = closes ? .closes : echoes ? .echoes : .reads
        transport = WebTransport(options, times: times)
        transport.page = page
        run { [self] in
            transport.start(on: loop, events: self)
            transport.advertise(Self.advertisement)
        }
    }

    static let advertisement = Advertisement(
        service: "test", peer: Identity.ephemeral(seed: 1).peerID, name: DisplayName(fitting: "Host"))

    deinit { loop.shutdown() }

    /// Ends the transport and its loop.
    func stop() {
        run { [self] in transport.shutdown() }
        loop.shutdown()
    }

    /// Runs `body` on the loop and waits for its result.
    @discardableResult
    func run<Result: Sendable>(_ body: @escaping @Sendable () -> Result) -> Result {
        let box = Box<Result>()
        loop.execute { [monitor] in
            let result = body()
            monitor.change { box.value = result }
        }
        guard wait(until: { box.value != nil }), let result = monitor.read({ box.value }) else {
            preconditionFailure("the loop is stuck")
        }
        return result
    }

    /// Waits for at most 20 s. Returns whether it became true.
    func wait(until isTrue: () -> Bool) -> Bool { monitor.wait(within: .seconds(20), until: isTrue) }

    /// Waits until the loop itself has brought something about.
    func waitOnLoop(until isTrue: @escaping @Sendable () -> Bool) -> Bool {
        for _ in 0..<2_000 {
            if run(isTrue) { return true }
            usleep(5_000)
        }
        return false
    }

    var listening: [TransportAddress] { monitor.read { recordedListening } }
    var failures: [NighError] { monitor.read { recordedFailures } }
    var pipes: [ServedPipe] { monitor.read { recordedPipes } }

    /// The port, once it listens.
    var port: UInt16 {
        guard wait(until: { !recordedListening.isEmpty }) else { preconditionFailure("\(failures)") }
        return run { [self] in transport.names.addresses.first?.port ?? 0 }
    }

    /// Makes an invitation, and returns its token.
    func invite() -> [UInt8] {
        _ = port
        let url = run { [self] in transport.makeInvitationNow()?.url ?? "" }
        guard let token = Base32.decode(String(url.drop { $0 != "#" }.dropFirst())) else {
            preconditionFailure("no token in \(url)")
        }
        return token
    }

    var guests: [Guest] { run { [self] in transport.guests } }

    /// `@unchecked Sendable`: the monitor guards the value.
    private final class Box<Value>: @unchecked Sendable {
        var value: Value?
    }
}

extension Server: TransportEventHandler {
    func handle(_ event: TransportEvent, by transport: any Transport) {
        switch event {
        case .pipeOpened(let pipe, _):
            let pipe = ServedPipe(pipe, habit, monitor)
            monitor.change { recordedPipes.append(pipe) }
            pipe.start()
        case .listeningChanged(let addresses): monitor.change { recordedListening = addresses }
        case .advertisingFailed(let error): monitor.change { recordedFailures.append(error) }
        default: break
        }
    }
}

/// A pipe of a guest at the side of the server, and what it reported.
///
/// `@unchecked Sendable`: the monitor guards what was recorded.
final class ServedPipe: PipeHandler, @unchecked Sendable {
    enum End: Equatable {
        case closed(NighError?)
        case drained
    }

    /// How a pipe treats the bytes that it receives.
    enum Habit {
        case reads
        case echoes
        case closes
    }

    let pipe: any Pipe
    private let habit: Habit
    private let monitor: Monitor
    private var recordedBytes: [UInt8] = []
    private var recordedCount = 0
    private var recordedEnds: [End] = []

    fileprivate init(_ pipe: any Pipe, _ habit: Habit, _ monitor: Monitor) {
        self.pipe = pipe
        self.habit = habit
        self.monitor = monitor
    }

    var guest: PeerID? { (pipe as? any GuestPipe)?.guest }
    var bytes: [UInt8] { monitor.read { recordedBytes } }
    var count: Int { monitor.read { recordedCount } }
    /// The last calls, of which there should be one.
    var ends: [End] { monitor.read { recordedEnds } }

    fileprivate func start() { pipe.start(handler: self) }

    func write(_ bytes: [UInt8]) {
        var queue = ByteQueue()
        queue.append(ByteSlice(bytes))
        pipe.write(&queue)
    }

    func pipe(_ pipe: any Pipe, received bytes: ByteSlice) {
        monitor.change {
            recordedCount += bytes.count
            if recordedCount < 1 << 20 { recordedBytes += bytes.bytes }
        }
        switch habit {
        case .reads: break
        case .closes: pipe.close(.afterWriting)
        case .echoes:
            var queue = ByteQueue()
            queue.append(bytes)
            pipe.write(&queue)
            if pipe.writableBytes <= 0 { pipe.pauseReading() }
        }
    }
    func pipeBecameWritable(_ pipe: any Pipe) { if habit == .echoes { pipe.resumeReading() } }
    func pipeEnded(_ pipe: any Pipe) {}
    func pipeClosed(_ pipe: any Pipe, error: NighError?) {
        monitor.change { recordedEnds.append(.closed(error)) }
    }
    func pipeDrained(_ pipe: any Pipe) { monitor.change { recordedEnds.append(.drained) } }
}
