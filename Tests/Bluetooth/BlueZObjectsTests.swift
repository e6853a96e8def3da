import Testing

@testable import NighBluetooth

/// Tests what is known of adapters and devices from the messages of bluetoothd.
struct BlueZObjectsTests {
    private static let adapter = "org.bluez.Adapter1"
    private static let device = "org.bluez.Device1"
    private static let path = "/org/bluez/hci0/dev_00_AA_01_00_00_42"

    private func adapter(
        _ objects: inout BlueZObjects, _ name: String, _ properties: [String: BusValue] = [:]
    ) -> [BlueZObjects.Change] {
        let address = ["Address": BusValue.text("00:AA:01:00:00:01")]
        return objects.added(
            "/org/bluez/\(name)", [Self.adapter: .entries(address.merging(properties) { $1 })])
    }

    private func device(
        _ objects: inout BlueZObjects, _ properties: [String: BusValue] = [:]
    ) -> [BlueZObjects.Change] {
        let own = [
            "Address": BusValue.text("00:AA:01:00:00:42"), "Adapter": .text("/org/bluez/hci0"),
        ]
        return objects.added(Self.path, [Self.device: .entries(own.merging(properties) { $1 })])
    }

    @Test func `An adapter is added changed and removed`() {
        var objects = BlueZObjects()
        #expect(adapter(&objects, "hci0", ["Powered": .boolean(true)]) == [.adapters])
        #expect(objects.adapters["/org/bluez/hci0"]?.isPowered == true)
        #expect(objects.adapters["/org/bluez/hci0"]?.isDiscoverable == false)
        #expect(objects.adapters["/org/bluez/hci0"]?.address.description == "00:AA:01:00:00:01")
        let changed = objects.changed(
            "/org/bluez/hci0", Self.adapter, ["Discoverable": .boolean(true), "Alias": .text("x")],
            without: [])
        #expect(changed == [.adapters])
        #expect(objects.adapters["/org/bluez/hci0"]?.isDiscoverable == true)
        #expect(objects.removed("/org/bluez/hci0", [Self.adapter, "org.bluez.Media1"]) == [.adapters])
        #expect(objects.adapters.isEmpty)
    }

    @Test func `Signals without new values report no change`() {
        var objects = BlueZObjects()
        _ = adapter(&objects, "hci0", ["Powered": .boolean(true)])
        for properties in [[:], ["Powered": .boolean(true)], ["Powered": .text("no")], ["Alias": .other]]
            as [[String: BusValue]]
        {
            #expect(objects.changed("/org/bluez/hci0", Self.adapter, properties, without: []) == [])
        }
        #expect(
            objects.changed("/org/bluez/hci0", Self.device, ["Powered": .boolean(false)], without: []) == [])
        #expect(
            objects.changed("/org/bluez/hci9", Self.adapter, ["Powered": .boolean(false)], without: []) == [])
        #expect(objects.changed(Self.path, Self.device, ["RSSI": .integer(-5)], without: []) == [])
        #expect(objects.removed("/org/bluez/hci9", [Self.adapter]) == [])
        #expect(objects.removed("/org/bluez/hci0", ["org.bluez.Media1"]) == [])
        #expect(objects.removed(Self.path, [Self.device]) == [])
    }

    /// By number, not alphabetically. Those without a number come last.
    @Test func `Adapters are sorted by number`() {
        var objects = BlueZObjects()
        for name in ["hci10", "vhci", "hci2", "hci70000", "hci0"] { _ = adapter(&objects, name) }
        #expect(objects.adaptersInOrder.map(\.name) == ["hci0", "hci2", "hci10", "hci70000", "vhci"])
        #expect(objects.adaptersInOrder.map(\.index) == [0, 2, 10, nil, nil])
    }

    @Test func `A device is read from its properties`() throws {
        var objects = BlueZObjects()
        let changes = device(
            &objects,
            [
                "UUIDs": .list([.text("ABCD"), .other, .text("ef")]), "Paired": .boolean(true),
                "Bonded": .boolean(false), "Connected": .boolean(true), "Class": .integer(0x10C),
                "RSSI": .integer(-60), "Name": .text("Puma"),
            ])
        let device = try #require(objects.devices[Self.path])
        #expect(changes == [.device(device)])
        #expect(device.address == Samples.device)
        #expect(device.services == ["abcd", "ef"])
        #expect(device.isPaired)
        #expect(device.isBonded == false)
        #expect(device.kind == 0x10C)
        #expect(device.signal == -60)
    }

    @Test func `A device with few properties is reported`() throws {
        var objects = BlueZObjects()
        _ = device(&objects)
        let device = try #require(objects.devices[Self.path])
        #expect(device.services.isEmpty && !device.isPaired)
        #expect(device.isBonded == nil && device.kind == nil && device.signal == nil)
    }

    @Test func `A device out of range has no signal strength`() {
        var objects = BlueZObjects()
        _ = device(&objects, ["RSSI": .integer(-60)])
        _ = objects.changed(Self.path, Self.device, [:], without: ["TxPower"])
        #expect(objects.devices[Self.path]?.signal == -60)
        _ = objects.changed(Self.path, Self.device, ["Connected": .boolean(true)], without: ["RSSI"])
        #expect(objects.devices[Self.path]?.signal == nil)
        let changes = objects.removed(Self.path, [Self.device])
        guard case .deviceGone(let gone) = changes.first else {
            Issue.record("\(changes)")
            return
        }
        #expect(gone.address == Samples.device)
        #expect(objects.devices.isEmpty)
    }

    /// A device is known to one adapter. Another adapter has its own view of it.
    @Test func `A device belongs to the adapter that reported it`() throws {
        var objects = BlueZObjects()
        _ = adapter(&objects, "hci0")
        _ = adapter(&objects, "hci1")
        _ = device(&objects)
        let first = try #require(objects.adapters["/org/bluez/hci0"])
        let second = try #require(objects.adapters["/org/bluez/hci1"])
        #expect(objects.devices(of: first).map(\.path) == [Self.path])
        #expect(objects.devices(of: second).isEmpty)
        #expect(objects.device(Samples.device, of: first)?.path == Self.path)
        #expect(objects.device(Samples.device, of: second) == nil)
        #expect(objects.device(Samples.other, of: first) == nil)
    }

    @Test(
        arguments: [
            ["Address": .text("00:AA"), "Adapter": .text("/org/bluez/hci0")],
            ["Address": .integer(5), "Adapter": .text("/org/bluez/hci0")],
            ["Adapter": .text("/org/bluez/hci0")],
            ["Address": .text("00:AA:01:00:00:42")],
            ["Address": .text("00:AA:01:00:00:42"), "Adapter": .other],
            [:],
        ] as [[String: BusValue]])
    func `Objects without address or adapter are ignored`(_ properties: [String: BusValue]) {
        var objects = BlueZObjects()
        #expect(objects.added(Self.path, [Self.device: .entries(properties)]) == [])
        #expect(objects.added(Self.path, [Self.device: .other, Self.adapter: .entries([:])]) == [])
        #expect(objects.devices.isEmpty && objects.adapters.isEmpty)
    }
}
