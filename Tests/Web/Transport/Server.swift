import Glibc
import NighTestKit
import NighUV
import Testing

@testable import NighCore
@testable import NighTCP
@testable import NighWeb

/// A transport for guests on loopback, on a loop that runs by itself, and the pipes that guests open. Both
/// end with this object, which its browsers keep. Work on the loop gets the transport, and does not keep the server.
final class Server {
    private let loop = UVEventLoop()
    private let transport: WebTransport
    private let record: ServerRecord

    static let page = WebPage([
        "/": WebPage.File(type: "text/html; charset=utf-8", bytes: ByteSlice(Array("<p>Welcome".utf8))),
        "/style.css": WebPage.File(type: "text/css", bytes: ByteSlice(Array("p {}".utf8))),
    ])

    /// - Parameter habit: how pipes treat the bytes that they receive.
    init(
        _ habit: ServedPipe.Habit = .reads, page: WebPage = Server.page, times: WebTimes = WebTimes(),
        adjust: (inout WebOptions) -> Void = { _ in }
    ) {
        var options = WebOptions()
        options.interface = "lo"
        options.port = 0
        adjust(&options)
        record = ServerRecord(habit)
        transport = WebTransport(options, times: times)
        transport.page = page
        run { [loop, record] transport in
            transport.start(on: loop, events: record)
            transport.advertise(Self.advertisement)
        }
    }

    static let advertisement = Advertisement(
        service: "test", peer: Identity.ephemeral(seed: 1).peerID, name: DisplayName(fitting: "Host"))

    deinit {
        run { $0.shutdown() }
        loop.shutdown()
    }

    // MARK: The loop

    /// Runs `body` on the loop and waits for its result.
    @discardableResult
    func run<Result>(_ body: @escaping (WebTransport) -> Result) -> Result {
        loop.call { [transport] in body(transport) }
    }

    /// Waits for at most 20 s. Returns whether it became true.
    func wait(until isTrue: () -> Bool) -> Bool { record.monitor.wait(within: .seconds(20), until: isTrue) }

    /// Waits until the loop itself has brought something about.
    func waitOnLoop(until isTrue: @escaping @Sendable (WebTransport) -> Bool) -> Bool {
        for _ in 0..<2_000 {
            if run(isTrue) { return true }
            usleep(5_000)
        }
        return false
    }

    /// Keeps the loop busy while `body` runs, so that nothing is accepted.
    func stall(during body: () -> Void) {
        nonisolated(unsafe) var isReleased = false
        loop.execute { [monitor = record.monitor] in _ = monitor.wait(within: .seconds(20)) { isReleased } }
        body()
        record.monitor.change { isReleased = true }
    }

    // MARK: Its state

    var listening: [TransportAddress] { record.monitor.read { record.listening } }
    var failures: [NighError] { record.monitor.read { record.failures } }
    var pipes: [ServedPipe] { record.monitor.read { record.pipes } }
    var guests: [Guest] { run { $0.guests } }

    /// Waits until there are this many connections.
    func hasConnections(_ count: Int) -> Bool { waitOnLoop { $0.connectionCount == count } }

    /// The port, once it listens.
    var port: UInt16 {
        guard wait(until: { !record.listening.isEmpty }) else { preconditionFailure("\(failures)") }
        return run { $0.names.addresses.first?.port ?? 0 }
    }

    // MARK: Guests

    /// Makes an invitation, and returns its token.
    func invite() -> [UInt8] {
        _ = port
        return run { $0.makeToken() }
    }

    /// A connection to the server, from an address of the loopback interface with this last byte.
    func browser(from source: UInt32 = 1) -> Browser { Browser(port, from: source, of: self) }

    /// A browser with a WebSocket that has not entered.
    func stranger(from source: UInt32 = 1) -> Browser {
        let browser = browser(from: source)
        #expect(browser.upgrade()?.status == 101)
        return browser
    }

    /// A browser that has entered with an invitation.
    func guest(_ key: Int = 1, from source: UInt32 = 1) -> Browser {
        let browser = stranger(from: source)
        #expect(browser.enter(key, invite()).first == 1)
        return browser
    }

    /// The pipe that opens with the first byte of a guest.
    func openPipe(of guest: Browser) throws -> ServedPipe {
        let count = pipes.count
        guest.sendFrame(2, [1])
        try #require(wait { pipes.count > count })
        return pipes[count]
    }
}

extension WebTransport {
    /// Makes an invitation, and returns its token; an empty one if nothing listens.
    func makeToken() -> [UInt8] {
        let url = makeInvitationNow()?.url ?? ""
        return Base32.decode(String(url.drop { $0 != "#" }.dropFirst())) ?? []
    }
}

/// The events of a server's transport.
///
/// `@unchecked Sendable`: the monitor guards what was recorded.
private final class ServerRecord: @unchecked Sendable {
    let monitor = Monitor()
    private let habit: ServedPipe.Habit
    private(set) var pipes: [ServedPipe] = []
    private(set) var listening: [TransportAddress] = []
    private(set) var failures: [NighError] = []

    init(_ habit: ServedPipe.Habit) { self.habit = habit }
}

extension ServerRecord: TransportEventHandler {
    func handle(_ event: TransportEvent, by transport: any Transport) {
        switch event {
        case .pipeOpened(let pipe, _):
            let pipe = ServedPipe(pipe, habit, monitor)
            monitor.change { pipes.append(pipe) }
            pipe.start()
        case .listeningChanged(let addresses): monitor.change { listening = addresses }
        case .advertisingFailed(let error): monitor.change { failures.append(error) }
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

    enum Habit { case reads, echoes, closes }

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
