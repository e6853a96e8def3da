import NighBroker
import NighCore

/// Makes the transport `nats`, which finds peers and carries pipes over NATS servers.
package enum NATSTransport {
    /// A long way: any local wire to the same peer is better. A relay's is longer still.
    private static let capabilities = TransportCapabilities(
        datagrams: false, typicalMTU: 64 << 10, typicalLatency: .milliseconds(20),
        expectedConnectTime: .milliseconds(300), priority: 5_000)

    /// The transport's entry for the registry.
    package static let registryEntry = TransportRegistry.Entry(
        scheme: NATSOptions.scheme, summary: "NATS servers, for peers that are not on one network",
        options: NATSOptions.keys, needsOptions: true
    ) { spec throws(NighError) in
        make(try NATSOptions(spec))
    }

    /// Makes a transport with these settings.
    package static func make(_ options: NATSOptions) -> BrokerTransport {
        BrokerTransport(
            NATSConnection(options), scheme: NATSOptions.scheme, realm: options.realm,
            capabilities: capabilities)
    }
}
