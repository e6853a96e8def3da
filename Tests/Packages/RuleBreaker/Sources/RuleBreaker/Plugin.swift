import NighCore
import NighPlugins

/// `unix:folder=PATH,breaks=RULE`: the example's transport, which breaks that rule as soon as a pipe has received
/// something.
@c(nigh_transport_plugin)
public func nighTransportPlugin() -> UnsafePointer<nigh_plugin> {
    TransportPlugin.describe(scheme: "unix", version: "0", capabilities: UnixTransport.costs) {
        TransportPlugin.offer(entry)
    }
}

extension UnixTransport {
    static let costs = nigh_plugin_capabilities(
        datagrams: false, typical_mtu: 65_536, typical_latency_ms: 0.02, expected_connect_ms: 1, priority: 50)
}

private let entry = TransportRegistry.Entry(
    scheme: "unix", summary: "breaks a rule",
    options: ["folder": "where programs meet", "breaks": "which rule"],
    make: { spec throws(NighError) in
        guard let folder = spec.options["folder"] else {
            throw NighError(.configuring, .invalid("folder, which is missing"), transport: spec.scheme)
        }
        let breaker = RuleBreaker(
            spec.options["breaks"].flatMap(ContractRule.init), around: UnixTransport(folder: folder))
        breaker.onReceive = { $0.misbehave() }
        return breaker
    })
