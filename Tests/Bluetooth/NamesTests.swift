import NighBluetooth
import NighCore
import NighTestKit
import Testing

/// Tests how devices, services and addresses are named.
struct NamesTests {
    /// The UUIDs were computed by another implementation of RFC 4122, in the namespace
    /// 1a0f6d2c-53b7-4e0e-9c41-6e6967680001. If they change, programs with an older version are no longer found.
    @Test(arguments: [
        ("chat", "8afde917-55d7-5f9e-b31b-d74ee489ee07"), ("nigh", "2a8f9414-2a43-5283-8449-8955165d8257"),
        ("a", "affac4e8-6358-50d1-b23c-3614e75efdfb"), ("x-1", "e116d007-4543-5b15-8fa8-3d3a6512420b"),
        ("fifteen-letters", "4f1ba479-d227-5403-9d1f-9721f40f0c44"),
    ])
    func `A service has the same UUID everywhere`(_ name: String, _ uuid: String) throws {
        #expect(BluetoothUUID(of: try #require(ServiceName(name))).description == uuid)
    }

    @Test func `The example services in docs/reference/PROTOCOL.md have the UUIDs that it states`() throws {
        let page = RepositoryFile.text(of: "docs/reference/PROTOCOL.md")
        let examples = page.matches(of: #/of `([a-z-]+)` (?:it is )?`([0-9a-f]{8}-[0-9a-f-]{27})`/#)
        #expect(examples.count == 2)
        for example in examples {
            let name = try #require(ServiceName(String(example.1)))
            #expect(BluetoothUUID(of: name).description == example.2)
        }
    }

    @Test func `A UUID of each length is parsed`() {
        let rfcomm = BluetoothUUID(short: 3)
        #expect(rfcomm.description == "00000003-0000-1000-8000-00805f9b34fb")
        #expect(BluetoothUUID([0, 3]) == rfcomm)
        #expect(BluetoothUUID([0, 0, 0, 3]) == rfcomm)
        #expect(BluetoothUUID(rfcomm.bytes) == rfcomm)
        for count in [0, 1, 3, 5, 8, 15, 17] {
            #expect(BluetoothUUID([UInt8](repeating: 1, count: count)) == nil)
        }
    }

    @Test func `Random UUIDs have version 4 and are unique`() {
        let uuids = (0..<100).map { _ in BluetoothUUID.random() }
        #expect(Set(uuids).count == 100)
        for uuid in uuids {
            #expect(uuid.bytes[6] >> 4 == 4)
            #expect(uuid.bytes[8] >> 6 == 2)
        }
    }

    @Test func `An address survives parsing and printing`() {
        for text in ["00:AA:01:00:00:42", "FF:FF:FF:FF:FF:FF", "00:00:00:00:00:00"] {
            #expect(BluetoothAddress(text)?.description == text)
            #expect(BluetoothAddress(text.lowercased())?.description == text)
        }
        #expect(BluetoothAddress("01:02:03:04:05:06")?.number == 0x0102_0304_0506)
        #expect(BluetoothAddress(number: .max).description == "FF:FF:FF:FF:FF:FF")
    }

    @Test func `The kernel stores address bytes in reverse order`() throws {
        let address = try #require(BluetoothAddress("01:02:03:04:05:06"))
        #expect(address.raw.b.0 == 6)
        #expect(address.raw.b.5 == 1)
        #expect(BluetoothAddress(address.raw) == address)
    }

    @Test(arguments: [
        "", ":", "00:AA:01:00:00", "00:AA:01:00:00:42:", "00:AA:01:00:00:42:43", "00:AA:01:00:00:4",
        "00:AA:01:00:00:+4", "00:AA:01:00:00:-1", "00:AA:01:00:00:0x", "0:0AA:01:00:00:42",
        "00-AA-01-00-00-42", "00:AA:01:00:00:é", " 00:AA:01:00:00:42", "00:AA:01:00:00:42\0", "00AA01000042",
    ])
    func `Invalid addresses are rejected`(_ text: String) {
        #expect(BluetoothAddress(text) == nil)
    }

    @Test func `A destination survives parsing and printing`() throws {
        for text in [
            "bluetooth://00:AA:01:00:00:42/1", "bluetooth://00:AA:01:00:00:42/30",
            "bluetooth://00:AA:01:00:00:42",
        ] {
            let address = try #require(TransportAddress(text))
            #expect(try BluetoothDestination(address).transportAddress == address)
        }
    }

    @Test(arguments: [
        ("00:AA:01:00:00", "a device is written as"), ("", "a device is written as"),
        ("/3", "a device is written as"), ("00:AA:01:00:00:42/", "1 to 30"),
        ("00:AA:01:00:00:42/0", "1 to 30"), ("00:AA:01:00:00:42/31", "1 to 30"),
        ("00:AA:01:00:00:42/256", "1 to 30"), ("00:AA:01:00:00:42/-1", "1 to 30"),
        ("00:AA:01:00:00:42/+3", "1 to 30"), ("00:AA:01:00:00:42/03", "1 to 30"),
        ("00:AA:01:00:00:42/3/", "1 to 30"), ("00:AA:01:00:00:42/three", "1 to 30"),
    ])
    func `Invalid destinations are rejected with an example`(_ value: String, _ advice: String) throws {
        let address = TransportAddress(scheme: "bluetooth", value: value)
        let error = try #require(throws: NighError.self) { try BluetoothDestination(address) }
        #expect(error.stage == .connecting)
        #expect(error.advice?.contains(advice) == true)
    }

    @Test func `An address of another transport is rejected`() throws {
        let address = TransportAddress(scheme: "tcp", value: "00:AA:01:00:00:42")
        let error = try #require(throws: NighError.self) { try BluetoothDestination(address) }
        #expect("\(error)".contains("it is not a Bluetooth address"))
    }
}
