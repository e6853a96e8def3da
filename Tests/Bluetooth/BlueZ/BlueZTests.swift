import Testing

@testable import NighBluetooth

/// Tests that a program follows bluetoothd and its adapters as they come and go. A fake bluetoothd on a real bus
/// behaves as the real one does.
struct BlueZTests {
    private static let hci700 = FakeBluetoothd.path(700)

    @Test func `The availability follows every change of bluetoothd and its adapters`() throws {
        let scene = try BlueZScene(isRunning: false)
        #expect(scene.wait(for: "bluetoothd is not running"))
        try scene.restart { _ in }
        #expect(scene.wait(for: "there is no Bluetooth adapter"))
        scene.call { $0.plug(700, isPowered: false) }
        #expect(scene.wait(for: "the adapter hci700 is powered off"))
        scene.call { $0.change(Self.hci700, "Powered", .boolean(true)) }
        #expect(scene.wait(for: "hci700"))
        scene.call { $0.change(Self.hci700, "Powered", .boolean(false)) }
        #expect(scene.wait(for: "the adapter hci700 is powered off", times: 2))
        scene.call { $0.unplug(700) }
        #expect(scene.wait(for: "there is no Bluetooth adapter", times: 2))
        let generation = scene.room.call { scene.bluez.generation }
        scene.call { $0.stop() }
        #expect(scene.wait(for: "bluetoothd is not running", times: 2))
        try scene.restart()
        #expect(scene.wait(for: "hci700", times: 2))
        #expect(scene.room.call { scene.bluez.generation } > generation)
        scene.stopFollowing()
        let before = scene.room.notes.count
        scene.call { $0.unplug(700) }
        scene.room.call {}
        #expect(scene.room.notes.count == before)
    }

    /// A bluetoothd that hangs is ended by nobody, so the bus has nothing to report when it answers again.
    @Test func `Objects that bluetoothd does not report are read again`() throws {
        let scene = try BlueZScene {
            $0.plug(700)
            $0.refused["GetManagedObjects"] = "org.freedesktop.DBus.Error.NoReply"
        }
        #expect(scene.wait(for: "bluetoothd is not running"))
        scene.call { $0.refused = [:] }
        #expect(scene.wait(for: "hci700"))
    }

    @Test func `Only the requested adapter is used`() throws {
        let scene = try BlueZScene(adapter: "hci701")
        #expect(scene.wait(for: "there is no adapter hci701"))
        #expect(
            scene.room.call { scene.bluez.availability.fault }
                == .noSuchAdapter("hci701", known: ["hci700"]))
        scene.call { $0.plug(701, isPowered: false) }
        #expect(scene.wait(for: "the adapter hci701 is powered off"))
        scene.call { $0.change(FakeBluetoothd.path(701), "Powered", .boolean(true)) }
        #expect(scene.wait(for: "hci701"))
        scene.call { $0.unplug(701) }
        #expect(scene.wait(for: "there is no adapter hci701", times: 2))
        #expect(!scene.room.notes.contains("hci700"))
    }

    @Test func `An adapter is replaced only when it becomes unavailable`() throws {
        let scene = try BlueZScene {
            $0.plug(701)
            $0.plug(702)
        }
        #expect(scene.wait(for: "hci701"))
        scene.call { $0.plug(700) }
        scene.call { $0.change(FakeBluetoothd.path(701), "Discoverable", .boolean(true)) }
        #expect(scene.wait(for: "hci701, discoverable"))
        #expect(!scene.room.notes.contains("hci700"))
        scene.call { $0.change(FakeBluetoothd.path(701), "Powered", .boolean(false)) }
        #expect(scene.wait(for: "hci700"))
        #expect(!scene.room.notes.contains("hci702"))
    }

    @Test func `Only devices of the adapter in use are reported`() throws {
        let scene = try BlueZScene {
            $0.plug(700)
            $0.plug(701)
            $0.see(Samples.device, by: 700)
        }
        #expect(scene.wait(for: "hci700"))
        // A device that was there before is not reported, but known.
        let known = scene.room.call {
            scene.bluez.availability.adapter.flatMap { scene.bluez.objects?.devices(of: $0) }
        }
        #expect(known?.map(\.address) == [Samples.device])
        let path = FakeBluetoothd.path(Samples.device, of: 700)
        scene.call {
            $0.see(Samples.other, by: 701)
            $0.change(path, "RSSI", .number16(50))
        }
        #expect(scene.wait(for: "seen \(Samples.device) 50"))
        scene.call { $0.change(path, "RSSI", nil) }
        #expect(scene.wait(for: "seen \(Samples.device) without a signal"))
        scene.call { $0.see(Samples.other, by: 700) }
        #expect(scene.wait(for: "seen \(Samples.other) without a signal"))
        scene.call {
            $0.forget(Samples.other, by: 701)
            $0.forget(Samples.device, by: 700)
        }
        #expect(scene.wait(for: "gone \(Samples.device)"))
        #expect(!scene.room.notes.contains("gone \(Samples.other)"))
        #expect(scene.room.notes.count { $0 == "seen \(Samples.other) without a signal" } == 1)
    }

    /// With the bus, bluetoothd goes too, and everything that was registered with it.
    @Test func `After the bus was lost, everything is read and registered on the new one`() throws {
        let scene = try BlueZScene()
        scene.publish(Samples.sessionRecord(handle: 0))
        try #require(scene.wait(for: "registered"))
        let generation = scene.room.call { scene.bluez.generation }
        scene.room.daemon.stop()
        #expect(scene.wait(for: BlueZScene.noBus))
        // All of it is there again before this side looks.
        try scene.room.daemon.start()
        try scene.restart()
        #expect(scene.wait(for: "registered", times: 2))
        #expect(scene.room.call { scene.bluez.generation } > generation)
        #expect(scene.room.notes.count { $0 == BlueZScene.noBus } == 1)
    }

    @Test func `Calls without a bus fail, and nothing is reported after the end`() throws {
        let scene = try BlueZScene()
        let (room, manager) = (scene.room, "org.bluez.AgentManager1")
        try #require(scene.wait(for: "hci700"))
        room.daemon.stop()
        #expect(scene.wait(for: BlueZScene.noBus))
        room.call {
            scene.bluez.call("/org/bluez", manager, "RegisterAgent") { result in
                if case .failure = result { room.note("failed") }
            }
            #expect(scene.bluez.export(at: "/object") { _ in } == nil)
        }
        #expect(scene.wait(for: "failed"))
        scene.stopFollowing()
        room.call {
            scene.bluez.call("/org/bluez", manager, "RegisterAgent") { _ in room.note("told") }
        }
        room.call {}
        #expect(!room.notes.contains("told"))
    }
}
