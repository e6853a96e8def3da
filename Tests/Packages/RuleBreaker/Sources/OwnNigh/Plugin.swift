import NighLoop

/// A plugin that is correct except for how it is linked.
@c(nigh_transport_plugin)
public func nighTransportPlugin() -> UnsafePointer<nigh_plugin> {
    TransportPlugin.describe(
        scheme: "own", version: "1.0",
        capabilities: nigh_plugin_capabilities(
            datagrams: false, typical_mtu: 1_000, typical_latency_ms: 1, expected_connect_ms: 1, priority: 1)
    ) {
        TransportPlugin.offer(.init(scheme: "own", summary: "memory") { _ in MemoryTransport() })
    }
}
