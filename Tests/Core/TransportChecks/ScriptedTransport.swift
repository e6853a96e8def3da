@testable import NighCore

/// A transport that does only what a test makes it do, and records the calls it gets.
final class ScriptedTransport: Transport, @unchecked Sendable {
    // Confined to the loop, except for what it reports on a wrong thread.
    let scheme = "script"
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
    ) { if findsPlaces { found(.success([address])) } }
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

    /// What was written to it since the last call of this.
    func takeWritten() -> [UInt8] {
        defer { written = [] }
        return written
    }
}

/// The user of a checked transport, with everything that was reported to it.
final class Listener: TransportEvents, PipeHandler, @unchecked Sendable {
    // Confined to the loop. A test with threads reads it when the loop has ended.
    private(set) var log: [String] = []
    private(set) var errors: [NighError] = []
    private(set) var pipes: [any Pipe] = []
    private(set) var reporters: [any Transport] = []
    /// Called with each reported event.
    var reaction: (String) -> Void = { _ in }

    private func note(_ event: String, by transport: (any Transport)? = nil, _ error: NighError? = nil) {
        log.append(event)
        if let transport { reporters.append(transport) }
        if let error { errors.append(error) }
        reaction(event)
    }

    /// The events since the last call of this.
    func takeLog() -> [String] {
        defer { log = [] }
        return log
    }

    func routeFound(_ sighting: Sighting, by transport: any Transport) { note("found", by: transport) }
    func routeChanged(_ sighting: Sighting, by transport: any Transport) { note("changed", by: transport) }
    func routeLost(_ address: TransportAddress, by transport: any Transport) {
        note("lost \(address.value)", by: transport)
    }
    func addressKnown(_ address: TransportAddress, by transport: any Transport) {
        note("known", by: transport)
    }
    func pipeOpened(_ pipe: any Pipe, dial: DialID?, by transport: any Transport) {
        pipes.append(pipe)
        note("opened", by: transport)
        pipe.start(handler: self)
    }
    func dialFailed(_ dial: DialID, error: NighError, by transport: any Transport) {
        note("failed \(dial.number)", by: transport, error)
    }
    func advertised(as name: DisplayName, by transport: any Transport) { note("advertised", by: transport) }
    func advertisingFailed(_ error: NighError, by transport: any Transport) {
        note("advertisingFailed", by: transport, error)
    }
    func browsingFailed(_ error: NighError, by transport: any Transport) {
        note("browsingFailed", by: transport, error)
    }
    func listeningChanged(_ addresses: [TransportAddress], by transport: any Transport) {
        note("listening \(addresses.count)", by: transport)
    }
    func transportChanged(_ condition: TransportCondition, by transport: any Transport) {
        switch condition {
        case .up: note("up", by: transport)
        case .down(let error): note("down", by: transport, error)
        }
    }

    func pipe(_ pipe: any Pipe, received bytes: ByteSlice) { note("received \(bytes.count)") }
    func pipeBecameWritable(_ pipe: any Pipe) { note("writable") }
    func pipeEnded(_ pipe: any Pipe) { note("ended") }
    func pipeClosed(_ pipe: any Pipe, error: NighError?) { note("closed", by: nil, error) }
    func pipeDrained(_ pipe: any Pipe) { note("drained") }
}
