import Testing

@testable import NighBluetooth

/// Tests that strangers can find this machine when they should, and that the adapter's setting is restored afterwards.
struct DiscoverabilityTests {
    private static let on = "hci700, discoverable"

    @Test func `Discoverability is switched on and off, and requested again from a new bluetoothd`() throws {
        let scene = try BlueZScene()
        scene.beDiscoverable(true)
        try #require(scene.wait(for: Self.on))
        try scene.restart()
        try #require(scene.wait(for: Self.on, times: 2))
        scene.beDiscoverable(true)
        scene.beDiscoverable(false)
        #expect(scene.room.wait(until: { scene.room.notes.last == "hci700" }))
        let values = scene.call { $0.calls(of: "Set").map { $0.values.dropFirst().map(BusRoom.text) } }
        #expect(values == [["Discoverable", "true"], ["Discoverable", "false"]])
    }

    @Test func `An adapter that was discoverable before stays so`() throws {
        let scene = try BlueZScene { $0.plug(700, isDiscoverable: true) }
        try #require(scene.wait(for: Self.on))
        scene.beDiscoverable(true)
        scene.beDiscoverable(false)
        try #require(scene.waitForAnswers())
        #expect(scene.call { $0.calls.isEmpty && $0.isDiscoverable(700) })
    }

    /// If it is switched off before bluetoothd's own timeout, a person did it.
    @Test func `Discoverability that a person switched off stays off`() throws {
        let scene = try BlueZScene()
        scene.beDiscoverable(true)
        try #require(scene.wait(for: Self.on))
        scene.call { $0.change(FakeBluetoothd.path(700), "Discoverable", .boolean(false)) }
        try #require(scene.wait(for: "hci700", times: 2))
        scene.room.call { scene.availabilityChanged(from: .unknown) }
        #expect(scene.members == ["Set"])
    }

    @Test func `A refusal is kept for the diagnosis`() throws {
        let scene = try BlueZScene {
            $0.plug(700)
            $0.refused = ["Set": "org.bluez.Error.NotPermitted"]
        }
        scene.beDiscoverable(true)
        try #require(scene.wait(for: "Set"))
        try #require(scene.waitForAnswers())
        #expect(scene.discoverabilityRefusal?.name == "org.bluez.Error.NotPermitted")
    }
}
