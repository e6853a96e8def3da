import NighCore
import Testing

@Suite struct TransportRegistryTests {
    private static func entry(_ scheme: String, options: [String: String] = [:]) -> TransportRegistry.Entry {
        TransportRegistry.Entry(scheme: scheme, summary: "for tests", options: options) { spec in
            IdleTransport(spec: spec)
        }
    }

    let registry = TransportRegistry([
        entry("tcp", options: ["port": "where to listen", "interface": "which network"]), entry("memory"),
    ])

    @Test func aSpecMakesItsTransport() throws {
        let transport = try registry.make(TransportSpec(parsing: "tcp:port=4000"))
        #expect(transport.scheme == "tcp")
        #expect((transport as? IdleTransport)?.spec.options == ["port": "4000"])
        #expect(try registry.makeAll("memory,tcp:port=1,interface=lo").map(\.scheme) == ["memory", "tcp"])
    }

    @Test func anUnknownSchemeIsAnErrorThatListsTheKnown() {
        #expect(
            refusal("tpc:port=1")?.description
                == "checking the settings: there is no transport \"tpc\"; known are: memory, tcp")
        let none = #expect(throws: NighError.self) { try TransportRegistry().makeAll("tcp") }
        #expect(none?.advice == "none is registered")
    }

    @Test func anUnknownOptionIsAnErrorThatListsTheKnown() {
        #expect(
            refusal("tcp:prot=1,port=2")?.description
                == "checking the settings of tcp: invalid option \"prot\"; known are: interface, port")
        #expect(refusal("memory:name=x")?.advice == "it takes no options")
    }

    @Test func aTransportGivenTwiceIsRefused() {
        #expect(
            refusal("tcp,memory,tcp:port=1")?.cause
                == .invalid("transport \"tcp\", given twice in \"tcp,memory,tcp:port=1\""))
    }

    @Test func anErrorOfTheFactoryIsPassedOn() {
        let refusing = TransportRegistry.Entry(scheme: "radio", summary: "") { _ throws(NighError) in
            throw NighError(.starting, .unavailable("no antenna"))
        }
        let error = #expect(throws: NighError.self) { try TransportRegistry([refusing]).makeAll("radio") }
        #expect(error?.cause == .unavailable("no antenna"))
    }

    @Test func aThirdPartyTransportIsRegisteredOnce() throws {
        var registry = registry
        try registry.register(Self.entry("pigeon"))
        #expect(registry.entries.map(\.scheme) == ["memory", "pigeon", "tcp"])
        #expect(try registry.makeAll("pigeon").count == 1)
        let taken = #expect(throws: NighError.self) { try registry.register(Self.entry("tcp")) }
        #expect(taken?.cause == .invalid("scheme \"tcp\", which is registered already"))
        for bad in ["", "TCP", "my-wire", "5g", "abcdefghijklmnop"] {
            let error = #expect(throws: NighError.self) { try registry.register(Self.entry(bad)) }
            #expect(error?.cause == .invalid("scheme \"\(bad)\""))
        }
        #expect(self.registry.entries.count == 2, "a registry is a value")
    }

    private func refusal(_ list: String) -> NighError? {
        let error = #expect(throws: NighError.self) { try registry.makeAll(list) }
        #expect(error?.stage == .configuring)
        return error
    }
}

/// A transport that finds and reaches nobody. It shows from which spec it was made.
private final class IdleTransport: Transport {
    let spec: TransportSpec

    init(spec: TransportSpec) { self.spec = spec }

    var scheme: String { spec.scheme }
    var capabilities: TransportCapabilities {
        TransportCapabilities(
            datagrams: false, typicalMTU: 1_000, typicalLatency: .zero, expectedConnectTime: .zero,
            priority: 0)
    }
    func start(on loop: any EventLoop, events: any TransportEvents) {}
    func advertise(_ advertisement: Advertisement) {}
    func updateAdvertisement(_ advertisement: Advertisement) {}
    func stopAdvertising() {}
    func browse(_ service: ServiceName) {}
    func stopBrowsing() {}
    func dial(_ address: TransportAddress, as dial: DialID, timeout: Duration) {}
    func cancelDial(_ dial: DialID) {}
    func diagnose() -> [Diagnosis] { [] }
    func shutdown() {}
}
