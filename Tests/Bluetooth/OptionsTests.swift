import NighLoop
import Testing

@testable import NighBluetooth

/// Tests what a person can write behind `bluetooth:`.
struct OptionsTests {
    private func options(_ text: String) throws -> BluetoothOptions {
        try BluetoothOptions(TransportSpec(parsing: text))
    }

    @Test func `Options have defaults`() throws {
        let options = try options("bluetooth")
        #expect(options.adapter == nil)
        #expect(options.makesDiscoverable)
        #expect(options.interval == .seconds(10))
        #expect(options.knownAddresses.isEmpty)
        #expect(options.pairing == nil)
    }

    @Test func `Each option is parsed`() throws {
        let options = try options(
            "bluetooth:adapter=hci12,device=00:aa:01:00:00:42/7,discoverable=no,interval=600,pairing=just-works"
        )
        #expect(options.adapter == "hci12")
        #expect(!options.makesDiscoverable)
        #expect(options.interval == .seconds(600))
        #expect(
            options.knownAddresses == [TransportAddress(scheme: "bluetooth", value: "00:AA:01:00:00:42/7")])
        let pairing = try #require(options.pairing)
        #expect(!pairing.comparesDigits)
        #expect(try self.options("bluetooth:pairing=none,discoverable=yes,interval=1").pairing == nil)
    }

    @Test(arguments: [
        ("adapter=", "adapter \"\"", "bluetoothctl list"),
        ("adapter=hci", "adapter \"hci\"", "bluetoothctl list"),
        ("adapter=0", "adapter \"0\"", "hci0"), ("adapter=hci+1", "adapter \"hci+1\"", "hci0"),
        ("adapter=hci65536", "adapter \"hci65536\"", "hci0"), ("adapter=wlan0", "adapter \"wlan0\"", "hci0"),
        ("device=puma", "device \"puma\"", "bluetooth://00:11:22:33:44:55"),
        ("device=00:AA:01:00:00:42/31", "device \"00:AA:01:00:00:42/31\"", "1 to 30"),
        ("discoverable=true", "discoverable \"true\"", "write yes or no"),
        ("discoverable=", "discoverable \"\"", "write yes or no"),
        ("interval=0", "interval \"0\"", "1 to 600"), ("interval=601", "interval \"601\"", "1 to 600"),
        ("interval=soon", "interval \"soon\"", "1 to 600"), ("interval=1.5", "interval \"1.5\"", "1 to 600"),
        ("pairing=digits", "pairing \"digits\"", "none, just-works"),
    ])
    func `Invalid values are rejected with advice`(_ text: String, _ what: String, _ advice: String) throws {
        let error = try #require(throws: NighError.self) { try options("bluetooth:\(text)") }
        #expect(error.stage == .configuring)
        #expect(error.transport == "bluetooth")
        #expect("\(error)".contains(what))
        #expect(error.advice?.contains(advice) == true)
    }

    @Test func `The registry lists bluetooth and its options`() throws {
        let entry = try #require(TransportRegistry.standard.entries.first { $0.scheme == "bluetooth" })
        #expect(Set(entry.options.keys) == ["adapter", "device", "discoverable", "interval", "pairing"])
        let made = try TransportRegistry.standard.makeAll("tcp,bluetooth:adapter=hci1,interval=5,memory")
        #expect(made.map(\.scheme) == ["tcp", "bluetooth", "memory"])
        let transport = try #require(made[1] as? BluetoothTransport)
        #expect(transport.options.adapter == "hci1")
        #expect(transport.options.interval == .seconds(5))
        let error = #expect(throws: NighError.self) {
            try TransportRegistry.standard.makeAll("bluetooth:channel=3")
        }
        #expect(error?.advice == "known are: adapter, device, discoverable, interval, pairing")
    }

    /// A network is faster and reaches further, so it is tried first when there is one.
    @Test func `TCP is preferred to Bluetooth`() {
        #expect(BluetoothTransport().capabilities.priority > TCPTransport().capabilities.priority)
        #expect(!BluetoothTransport().capabilities.datagrams)
    }
}
