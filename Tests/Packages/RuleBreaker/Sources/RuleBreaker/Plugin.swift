import NighCore
import NighPlugins

/// `unix:folder=PATH,breaks=RULE`: the transport of the example, which breaks that rule from the moment on in which a pipe has heard
/// something; a rule about dials from the start.
@c(nigh_transport_plugin)
public func nighTransportPlugin() -> UnsafePointer<nigh_plugin> {
    TransportPlugin.describe(scheme: "unix", version: "0", capabilities: UnixTransport.costs) {
        TransportPlugin.offer(entry)
    }
}

private let entry = TransportRegistry.Entry(
    scheme: "unix", summary: "breaks a rule",
    options: UnixTransport.registryEntry.options.merging(["breaks": "which rule"]) { $1 },
    make: { spec throws(NighError) in
        let inner = TransportSpec(scheme: spec.scheme, options: spec.options.filter { $0.key != "breaks" })
        let breaker = RuleBreaker(
            spec.options["breaks"].flatMap(ContractRule.init),
            around: try UnixTransport.registryEntry.make(inner))
        breaker.whenHeard = { $0.misbehave() }
        return breaker
    })
