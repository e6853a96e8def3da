import NighCore
import NighMemory
import NighTestKit

/// Records what a transport reports, as text, and the pipes that it opened.
final class Recorder: TransportEvents, @unchecked Sendable {
    let transport: any Transport
    private(set) var log: [String] = []
    private(set) var pipes: [PipeRecorder] = []
    private var nextDial: UInt64 = 0

    init(_ transport: any Transport, on loop: any EventLoop) {
        self.transport = transport
        transport.start(on: loop, events: self)
    }

    var lastPipe: PipeRecorder { pipes[pipes.count - 1] }

    func takeLog() -> [String] {
        defer { log = [] }
        return log
    }

    @discardableResult
    func dial(_ address: TransportAddress, timeout: Duration = .seconds(5)) -> DialID {
        nextDial += 1
        transport.dial(address, as: DialID(number: nextDial), timeout: timeout)
        return DialID(number: nextDial)
    }

    func routeFound(_ sighting: Sighting, by transport: any Transport) {
        log.append("found \(sighting.address) \(sighting.advertisement.name)")
    }
    func routeChanged(_ sighting: Sighting, by transport: any Transport) {
        log.append("changed \(sighting.address) \(sighting.advertisement.name)")
    }
    func routeLost(_ address: TransportAddress, by transport: any Transport) { log.append("lost \(address)") }
    func addressKnown(_ address: TransportAddress, by transport: any Transport) {
        log.append("known \(address)")
    }
    func pipeOpened(_ pipe: any Pipe, dial: DialID?, by transport: any Transport) {
        log.append(dial.map { "dialled \($0.number)" } ?? "accepted")
        pipes.append(PipeRecorder(pipe))
    }
    func dialFailed(_ dial: DialID, error: NighError, by transport: any Transport) {
        log.append("failed \(dial.number): \(error.cause)")
    }
    func advertisingFailed(_ error: NighError, by transport: any Transport) { log.append("\(error)") }
    func browsingFailed(_ error: NighError, by transport: any Transport) { log.append("\(error)") }
    func advertised(as name: DisplayName, by transport: any Transport) {
        log.append("advertised as \(name)")
    }
    func listeningChanged(_ addresses: [TransportAddress], by transport: any Transport) {
        log.append("listening \(addresses)")
    }
    func transportChanged(_ condition: TransportCondition, by transport: any Transport) {
        log.append("\(condition)")
    }
}

/// Records what a pipe reports: the bytes, and everything else as text.
final class PipeRecorder: PipeHandler {
    let pipe: any Pipe
    var received: [UInt8] = []
    var receivedCount = 0
    var sliceCount = 0
    var lastPlace: UnsafeRawPointer?
    var log: [String] = []
    var onReceived: ((PipeRecorder) -> Void)?

    init(_ pipe: any Pipe) {
        self.pipe = pipe
        pipe.start(handler: self)
    }

    func send(_ bytes: some Collection<UInt8>) {
        var queue = ByteQueue()
        queue.append(ByteSlice(bytes))
        pipe.write(&queue)
    }

    func pipe(_ pipe: any Pipe, received bytes: ByteSlice) {
        receivedCount += bytes.count
        sliceCount += 1
        received += bytes.bytes
        lastPlace = bytes.withUnsafeBytes { $0.baseAddress }
        onReceived?(self)
    }
    func pipeBecameWritable(_ pipe: any Pipe) { log.append("writable") }
    func pipeEnded(_ pipe: any Pipe) { log.append("ended") }
    func pipeClosed(_ pipe: any Pipe, error: NighError?) {
        log.append(error.map { "closed: \($0.cause)" } ?? "closed")
    }
    func pipeDrained(_ pipe: any Pipe) { log.append("drained") }
}

/// An advertisement with the display name `name`.
func advertisement(_ name: String, service: ServiceName = "test") -> Advertisement {
    Advertisement(
        service: service, peer: PeerID(bytes: Array(repeating: UInt8(name.utf8.count), count: 32))!,
        name: DisplayName(fitting: name))
}

/// Two transports on one virtual loop, of which `server` advertises, at `memory://server`.
struct Pair {
    let loop = VirtualEventLoop()
    let server: Recorder
    let client: Recorder

    init(
        server makeServer: (any Transport) -> any Transport = { $0 },
        client makeClient: (any Transport) -> any Transport = { $0 }
    ) throws {
        let hub = MemoryHub()
        server = Recorder(makeServer(MemoryTransport(hub: hub, address: "server")), on: loop)
        client = Recorder(makeClient(MemoryTransport(hub: hub, address: "client")), on: loop)
        server.transport.advertise(advertisement("Server"))
        try loop.runQueued()
    }

    static let serverAddress = TransportAddress(scheme: "memory", value: "server")

    /// Opens a pipe; returns the client's and the server's end.
    func connect() throws -> (PipeRecorder, PipeRecorder) {
        client.dial(Self.serverAddress)
        _ = try loop.run(until: { client.log.last?.hasPrefix("dialled") == true }, within: .seconds(5))
        try loop.runQueued()
        return (client.lastPipe, server.lastPipe)
    }
}
