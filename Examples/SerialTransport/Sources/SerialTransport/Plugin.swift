// What makes this library a plugin: its one C function, and the transport's entry for the registry.
import NighTransport

/// The function that a program calls first.
@c(nigh_transport_plugin)
public func nighTransportPlugin() -> UnsafePointer<nigh_plugin> {
    TransportPlugin.describe(scheme: "serial", version: "1.0", capabilities: SerialTransport.costs) {
        TransportPlugin.offer(SerialTransport.registryEntry)
    }
}

extension SerialTransport {
    static let costs = nigh_plugin_capabilities(
        datagrams: false, typical_mtu: 1_024, typical_latency_ms: 50, expected_connect_ms: 100,
        priority: 300)

    static let registryEntry = TransportRegistry.Entry(
        scheme: "serial", summary: "a cable between the serial ports of two machines",
        options: [
            "device": "the serial port, such as /dev/ttyUSB0", "speed": "bits per second, 115200 by default",
        ]
    ) { spec throws(NighError) in
        func invalid(_ what: String, _ advice: String) -> NighError {
            NighError(.configuring, .invalid(what), transport: "serial", advice: advice)
        }
        guard let device = spec.options["device"], device.hasPrefix("/") else {
            throw invalid("device", "write serial:device=/dev/ttyUSB0")
        }
        let speed = Int(spec.options["speed"] ?? "115200") ?? 0
        guard TerminalPort.speeds[speed] != nil else {
            let known = TerminalPort.speeds.keys.sorted().map(String.init).joined(separator: ", ")
            throw invalid("speed", "choose one of \(known)")
        }
        return SerialTransport(speed: speed) { TerminalPort(device, speed: speed) }
    }
}
