import NighTestKit

@testable import NighCore

/// A transport that does only what a test makes it do, and records the calls it gets.
final class ScriptedTransport: Transport, @unchecked Sendable {
    // Confined to the loop, except for what it reports on a wrong thread.
    let spec: TransportSpec
    var scheme: String { spec.scheme }
    let capabilities = TransportCapabilities(
        datagrams: false, typicalMTU: 1_000, typicalLatency: .milliseconds(1),
        expectedConnectTime: .milliseconds(1), priority: 1)
    /// The calls it got.
    private(set) var calls: [String] = []
    /// Called inside each call, with its name.
    var during: (String) -> Void = { _ in }
    private(set) var events: (any TransportEvents)?
    /// Whether it says which places are behind an address.
    var findsPlaces = true
    /// The answer to the last question about places that it has left open.
    private(set) var foundPlaces: (@Sendable (Result<[TransportAddress], NighError>) -> Void)?

    init(spec: TransportSpec = TransportSpec(scheme: "script")) { self.spec = spec }

    static func address(_ value: String) -> TransportAddress {
        TransportAddress(scheme: "script", value: value)
    }

    static func error(_ stage: NighError.Stage = .connecting) -> NighError {
        NighError(stage, .refused, transport: "script")
    }

    static let service: ServiceName = "test"

    static let sighting = Sighting(
        address: address("somewhere"),
        advertisement: Advertisement(
            service: service, peer: Identity.ephemeral(seed: 7).peerID, name: DisplayName(fitting: "Puma")))

    func note(_ call: String) {
        calls.append(call)
        during(call)
    }

    func start(on loop: any EventLoop, events: any TransportEvents) {
        self.events = events
        note("start")
    }
    func advertise(_ advertisement: Advertisement) { note("advertise") }
    func updateAdvertisement(_ advertisement: Advertisement) { note("updateAdvertisement") }
    func stopAdvertising() { note("stopAdvertising") }
    func browse(_ service: ServiceName) { note("browse") }
    func stopBrowsing() { note("stopBrowsing") }
    func dial(_ address: TransportAddress, as dial: DialID, timeout: Duration) {
        note("dial \(dial.number)")
    }
    func cancelDial(_ dial: DialID) { note("cancelDial \(dial.number)") }
    func diagnose() -> [Diagnosis] {
        note("diagnose")
        return [Diagnosis("script", .pass, "well")]
    }
    func places(
        behind address: TransportAddress,
        found: @escaping @Sendable (Result<[TransportAddress], NighError>) -> Void
    ) { if findsPlaces { found(.success([address])) } else { foundPlaces = found } }
    func shutdown() { note("shutdown") }
}

/// A pipe of a `ScriptedTransport`.
final class ScriptedPipe: Pipe, @unchecked Sendable {
    // Confined to the loop, except for what it reports on a wrong thread.
    private let owner: ScriptedTransport
    var localAddress: TransportAddress?
    var remoteAddress: TransportAddress?
    private(set) var handler: (any PipeHandler)?
    var passed = PipeCounters()
    var room = 1_000
    private var written: [UInt8] = []

    init(of owner: ScriptedTransport) { self.owner = owner }

    var writableBytes: Int {
        owner.during("writableBytes")
        return room
    }
    var counters: PipeCounters {
        owner.during("counters")
        return passed
    }
    func start(handler: any PipeHandler) {
        self.handler = handler
        owner.note("pipe.start")
    }
    func write(_ queue: inout ByteQueue) {
        passed.bytesWritten += queue.byteCount
        written += queue.bytes
        queue.removeAll()
        owner.note("write")
    }
    func pauseReading() { owner.note("pauseReading") }
    func resumeReading() { owner.note("resumeReading") }
    func close(_ mode: PipeCloseMode) { owner.note("close \(mode)") }

    func receive(_ count: Int) { receive([UInt8](repeating: 1, count: count)) }

    func receive(_ bytes: [UInt8]) {
        passed.bytesReceived += bytes.count
        handler?.pipe(self, received: ByteSlice(bytes))
    }

    /// Returns the bytes that were written to it since the last call of this.
    func takeWritten() -> [UInt8] {
        defer { written = [] }
        return written
    }
}

/// The user of a checked transport, with everything that was reported to it.
final class Listener: TransportEventHandler, PipeHandler, @unchecked Sendable {
    // Confined to the loop. A test with threads reads it when the loop has ended.
    private(set) var log: [String] = []
    private(set) var errors: [NighError] = []
    private(set) var pipes: [any Pipe] = []
    private(set) var reporters: [any Transport] = []
    /// Called with each reported event.
    var reaction: (String) -> Void = { _ in }

    private func note(_ event: String, _ error: NighError? = nil) {
        log.append(event)
        if let error { errors.append(error) }
        reaction(event)
    }

    /// The events since the last call of this.
    func takeLog() -> [String] {
        defer { log = [] }
        return log
    }

    func handle(_ event: TransportEvent, by transport: any Transport) {
        reporters.append(transport)
        switch event {
        case .routeFound: note("found")
        case .routeChanged: note("changed")
        case .routeLost(let address): note("lost \(address.value)")
        case .addressKnown: note("known")
        case .pipeOpened(let pipe, _):
            pipes.append(pipe)
            note("opened")
            pipe.start(handler: self)
        case .dialFailed(let dial, let error): note("failed \(dial.number)", error)
        case .advertised: note("advertised")
        case .advertisingFailed(let error): note("advertisingFailed", error)
        case .browsingFailed(let error): note("browsingFailed", error)
        case .listeningChanged(let addresses): note("listening \(addresses.count)")
        case .transportChanged(.up): note("up")
        case .transportChanged(.down(let error)): note("down", error)
        }
    }

    func pipe(_ pipe: any Pipe, received bytes: ByteSlice) { note("received \(bytes.count)") }
    func pipeBecameWritable(_ pipe: any Pipe) { note("writable") }
    func pipeEnded(_ pipe: any Pipe) { note("ended") }
    func pipeClosed(_ pipe: any Pipe, error: NighError?) { note("closed", error) }
    func pipeDrained(_ pipe: any Pipe) { note("drained") }
}
