// The plugin interface of this library: its one C function, and the transport's entry for the registry.
import NighTransport

/// The function that a program calls first.
@c(nigh_transport_plugin)
public func nighTransportPlugin() -> UnsafePointer<nigh_plugin> {
    TransportPlugin.describe(scheme: "unix", version: "1.0", capabilities: UnixTransport.costs) {
        TransportPlugin.offer(UnixTransport.registryEntry)
    }
}

extension UnixTransport {
    static let costs = nigh_plugin_capabilities(
        datagrams: false, typical_mtu: 65_536, typical_latency_ms: 0.02, expected_connect_ms: 0.1,
        priority: 50)

    static let registryEntry = TransportRegistry.Entry(
        scheme: "unix", summary: "programs of one user on this machine, found in a folder",
        options: ["folder": "where programs meet: an absolute path of up to 80 bytes; made if it is missing"]
    ) { spec throws(NighError) in
        let folder = spec.options["folder"] ?? ""
        guard folder.hasPrefix("/"), folder.utf8.count <= 80 else {  // A socket's path may have 107 bytes.
            let cause = NighError.Cause.invalid("folder \"\(folder)\": no absolute path of up to 80 bytes")
            throw NighError(.configuring, cause, transport: "unix", advice: "write unix:folder=/tmp/us")
        }
        return UnixTransport(folder: folder)
    }
}
