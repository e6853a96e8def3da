import Testing

@testable import NighBluetooth

/// Tests that strangers can find this machine when they should, and that the adapter's setting is restored afterwards.
struct DiscoverabilityTests {
    private static let on = "hci700, discoverable"

    @Test func discoverabilityIsSwitchedOnAndOff() throws {
        let room = try BusRoom()
        let fake = try FakeBluetoothd.start(in: room) { $0.plug(700) }
        let user = BlueZUser(in: room)
        user.beDiscoverable(true)
        try #require(room.wait(for: Self.on))
        user.beDiscoverable(true)
        user.beDiscoverable(false)
        #expect(room.wait(until: { room.notes.last == "hci700" }))
        let values = room.call { fake.calls(of: "Set").map { $0.values.dropFirst().map(BusRoom.text) } }
        #expect(values == [["Discoverable", "true"], ["Discoverable", "false"]])
        user.stop()
        room.call { fake.stop() }
    }

    @Test func anAdapterThatWasDiscoverableStaysDiscoverable() throws {
        let room = try BusRoom()
        let fake = try FakeBluetoothd.start(in: room) { $0.plug(700, isDiscoverable: true) }
        let user = BlueZUser(in: room)
        try #require(room.wait(for: Self.on))
        user.beDiscoverable(true)
        user.beDiscoverable(false)
        try #require(user.waitForAnswers())
        #expect(room.call { fake.calls.isEmpty && fake.isDiscoverable(700) })
        user.stop()
        room.call { fake.stop() }
    }

    /// If it is switched off before bluetoothd's own timeout, a person did it.
    @Test func discoverabilityThatAPersonSwitchedOffStaysOff() throws {
        let room = try BusRoom()
        let fake = try FakeBluetoothd.start(in: room) { $0.plug(700) }
        let user = BlueZUser(in: room)
        user.beDiscoverable(true)
        try #require(room.wait(for: Self.on))
        room.call { fake.change(FakeBluetoothd.path(700), "Discoverable", .boolean(false)) }
        try #require(room.wait(for: "hci700", times: 2))
        room.call { user.availabilityChanged(from: .unknown) }
        #expect(room.call { fake.calls(of: "Set").count } == 1)
        user.stop()
        room.call { fake.stop() }
    }

    @Test func discoverabilityIsRequestedAgainFromARestartedBluetoothd() throws {
        let room = try BusRoom()
        let fake = try FakeBluetoothd.start(in: room) { $0.plug(700) }
        let user = BlueZUser(in: room)
        user.beDiscoverable(true)
        try #require(room.wait(for: Self.on))
        room.call { fake.stop() }
        let next = try FakeBluetoothd.start(in: room) { $0.plug(700) }
        #expect(room.wait(for: Self.on, times: 2))
        user.stop()
        room.call { next.stop() }
    }

    @Test func aRefusalOfDiscoverabilityIsKeptForTheDiagnosis() throws {
        let room = try BusRoom()
        let fake = try FakeBluetoothd.start(in: room) {
            $0.plug(700)
            $0.refused = ["Set": "org.bluez.Error.NotPermitted"]
        }
        let user = BlueZUser(in: room)
        user.beDiscoverable(true)
        try #require(room.wait(for: "Set"))
        try #require(user.waitForAnswers())
        #expect(user.discoverabilityRefusal?.name == "org.bluez.Error.NotPermitted")
        user.stop()
        room.call { fake.stop() }
    }
}
