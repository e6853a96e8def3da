import NighCore

/// Opens pipes through memory, between sessions of one process: for tests, for embedding, and as the simplest example
/// of a transport.
///
/// Transports on one ``MemoryHub`` find and reach each other. They may run on different loops. If all share one loop,
/// all events and their order depend on the calls alone. A transport does not see its own advertisement.
///
/// If another transport listens at the same address, advertising fails. It begins by itself when the other one stops.
///
/// All state is confined to the loop from `start` on; hence `@unchecked Sendable`.
public final class MemoryTransport: @unchecked Sendable {
    /// How many bytes may wait in a pipe before it counts as backed up, unless another number is given.
    public static let defaultHighWaterMark = 256 * 1024

    /// How long a pipe closed with `.afterWriting` waits for the other end to read the written bytes.
    public static let lingerTime = Moment.Span.seconds(10)

    package static let schemeName = "memory"

    /// The entry for a registry: `memory`, `memory:hub=NAME`, `memory:address=NAME`.
    public static let registryEntry = TransportRegistry.Entry(
        scheme: schemeName,
        summary: "pipes through memory, between the sessions of one process",
        options: [
            "hub": "the sessions on the hub of this name reach each other; by default one hub for all",
            "address": "where others find this session, memory://ADDRESS; by default a random one",
        ],
        make: { spec throws(NighError) in
            for (key, value) in spec.options where !isName(value) {
                throw NighError(
                    .configuring, .invalid("\(key) \"\(value)\""), transport: schemeName,
                    advice: "use 1 to 63 letters, digits, '-', '_' and '.'")
            }
            return MemoryTransport(
                hub: spec.options["hub"].map(MemoryHub.named) ?? .shared, address: spec.options["address"])
        })

    /// Datagrams, and the lowest cost of all transports.
    public let capabilities = TransportCapabilities(
        datagrams: true, typicalMTU: 65_536, typicalLatency: .microseconds(20),
        expectedConnectTime: .milliseconds(1), priority: 0)

    private struct Running {
        let member: MemoryHubMember
        let events: any TransportEvents
    }

    private let hub: MemoryHub
    private let chosenName: String?
    private let highWaterMark: Int
    private var running: Running?
    private var isStarted = false
    private var isBrowsing = false
    private var isAdvertising = false
    private var hasReportedListening = false
    private var dials: [DialID: LoopTimer?] = [:]
    private var pipes: [Int: MemoryPipe] = [:]
    private var pipeCount = 0

    /// Creates a transport on `hub`. It is found at `memory://address`, or at an address that the hub draws. The pipes
    /// that it dials count as backed up, in both directions, when `highWaterMark` bytes wait.
    public init(
        hub: MemoryHub = .shared, address: String? = nil,
        highWaterMark: Int = MemoryTransport.defaultHighWaterMark
    ) {
        self.hub = hub
        chosenName = address
        self.highWaterMark = highWaterMark
    }

    func forget(_ pipe: MemoryPipe) { pipes[pipe.number] = nil }

    private func takeTurn() {
        while let running, let event = hub.takeEvent(for: running.member) {
            let events = running.events
            switch event {
            case .found(let sighting): events.routeFound(sighting, by: self)
            case .changed(let sighting): events.routeChanged(sighting, by: self)
            case .lost(let address): events.routeLost(address, by: self)
            case .listening:
                hasReportedListening = true
                events.listeningChanged([running.member.address], by: self)
            case .addressTaken:
                let error = NighError(
                    .advertising, .invalid("address \(running.member.address), which is taken"),
                    transport: scheme, advice: Self.takenAdvice)
                events.advertisingFailed(error, by: self)
            case .inbound(let pipe):
                adopt(pipe)
                events.pipeOpened(pipe, dial: nil, by: self)
            case .opened(let dial, let pipe):
                guard dials.removeValue(forKey: dial) != nil else {
                    pipe.finishNow()
                    continue
                }
                adopt(pipe)
                events.pipeOpened(pipe, dial: dial, by: self)
            case .refused(let dial, let error): fail(dial, error)
            }
        }
    }

    private func adopt(_ pipe: MemoryPipe) {
        pipeCount += 1
        pipe.number = pipeCount
        pipe.owner = self
        pipes[pipeCount] = pipe
    }

    private func fail(_ dial: DialID, _ error: NighError) {
        guard let events = running?.events, dials.removeValue(forKey: dial) != nil else { return }
        events.dialFailed(dial, error: error, by: self)
    }

    static func address(_ name: String) -> TransportAddress {
        TransportAddress(scheme: schemeName, value: name)
    }

    private static let takenAdvice = "leave out address= to get a free one, or close the other session first"

    private static func isName(_ text: String) -> Bool {
        (1...63).contains(text.utf8.count)
            && text.utf8.allSatisfy {
                switch $0 {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
                    UInt8(ascii: "."):
                    true
                default: false
                }
            }
    }
}

// The protocol documents these members.
// swift-format-ignore: AllPublicDeclarationsHaveDocumentation
extension MemoryTransport: Transport {
    public var scheme: String { Self.schemeName }

    public func start(on loop: any EventLoop, events: any TransportEvents) {
        loop.checkIsolated()
        precondition(!isStarted, "a transport was started twice")
        isStarted = true
        let member = MemoryHubMember(
            loop: loop, address: chosenName.map(Self.address) ?? hub.drawAddress(),
            highWaterMark: highWaterMark, lingerTime: Self.lingerTime, takeTurn: { self.takeTurn() })
        running = Running(member: member, events: events)
    }

    public func advertise(_ advertisement: Advertisement) {
        guard let running else { return }
        isAdvertising = true
        hub.advertise(advertisement, from: running.member)
    }

    public func updateAdvertisement(_ advertisement: Advertisement) {
        guard let running, isAdvertising else { return }
        hub.update(advertisement, from: running.member)
    }

    public func stopAdvertising() {
        guard let running, isAdvertising else { return }
        isAdvertising = false
        for pipe in hub.stopListening(running.member) { pipe.finishNow() }
        guard hasReportedListening else { return }
        hasReportedListening = false
        running.member.loop.later {
            guard let events = self.running?.events, !self.hasReportedListening else { return }
            events.listeningChanged([], by: self)
        }
    }

    public func browse(_ service: ServiceName) {
        guard let running else { return }
        isBrowsing = true
        hub.browse(service, from: running.member)
    }

    public func stopBrowsing() {
        guard let running, isBrowsing else { return }
        isBrowsing = false
        hub.stopBrowsing(running.member)
    }

    public func dial(_ address: TransportAddress, as dial: DialID, timeout: Duration) {
        guard let running else { return }
        let loop = running.member.loop
        dials[dial] = .some(nil)
        guard address.scheme == scheme else {
            let error = NighError(
                .connecting, .invalid("address \(address)"), transport: scheme,
                advice: "the memory transport dials \(scheme)://NAME")
            return loop.execute { self.fail(dial, error) }
        }
        guard !hub.dial(address, as: dial, from: running.member) else { return }
        let error = NighError(
            .connecting, .timedOut, transport: scheme, advice: "\(address) answers no dial")
        dials[dial] = loop.schedule(at: loop.now + Moment.Span(timeout)) { self.fail(dial, error) }
    }

    public func cancelDial(_ dial: DialID) {
        guard let timer = dials.removeValue(forKey: dial), let timer else { return }
        running?.member.loop.cancel(timer)
    }

    public func diagnose() -> [Diagnosis] {
        guard let running else { return [Diagnosis("memory", .fail, "not started")] }
        let address = running.member.address
        var lines = [Diagnosis("hub", .pass, hub.name)]
        if !isAdvertising {
            lines.append(Diagnosis("address", .pass, "\(address), not advertised"))
        } else if hub.isListening(running.member) {
            lines.append(Diagnosis("address", .pass, "\(address), listening"))
        } else {
            lines.append(Diagnosis("address", .fail, "\(address) is taken", advice: Self.takenAdvice))
        }
        lines.append(Diagnosis("pipes", .pass, "\(pipes.count) open"))
        return lines
    }

    public func shutdown() {
        guard let running else { return }
        self.running = nil
        for timer in dials.values { if let timer { running.member.loop.cancel(timer) } }
        dials = [:]
        for pipe in hub.leave(running.member) { pipe.finishNow() }
        for number in pipes.keys.sorted() { pipes[number]?.finishNow() }
        pipes = [:]
    }
}
