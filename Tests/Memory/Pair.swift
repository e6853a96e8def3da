import NighCore
import NighMemory
import NighTestKit

/// An advertisement with the display name `name`.
func advertisement(_ name: String, service: ServiceName = "test") -> Advertisement {
    Advertisement(
        service: service, peer: PeerID(bytes: Array(repeating: UInt8(name.utf8.count), count: 32))!,
        name: DisplayName(fitting: name))
}

extension RecordedTransport {
    var log: [String] { recorder.log }
    var lastPipe: PipeRecorder { recorder.pipes[recorder.pipes.count - 1] }
    func takeLog() -> [String] { recorder.takeLog() }
}

/// Two transports on one virtual loop, of which `server` advertises, at `memory://server`.
struct Pair {
    let loop = VirtualEventLoop()
    let server: RecordedTransport
    let client: RecordedTransport

    init(
        server makeServer: (any Transport) -> any Transport = { $0 },
        client makeClient: (any Transport) -> any Transport = { $0 }
    ) throws {
        let hub = MemoryHub()
        server = RecordedTransport(makeServer(MemoryTransport(hub: hub, address: "server")), on: loop)
        client = RecordedTransport(makeClient(MemoryTransport(hub: hub, address: "client")), on: loop)
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
