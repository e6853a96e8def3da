import Testing

@testable import NighBluetooth

/// bluetoothd and its adapters come and go. A fake bluetoothd on a real bus behaves as the real one does.
struct BlueZTests {
    @Test func availabilityFollowsEveryChangeOfBluetoothdAndItsAdapters() throws {
        let room = try BusRoom()
        let user = BlueZUser(in: room)
        #expect(room.wait(for: "bluetoothd is not running"))
        let fake = try FakeBluetoothd.start(in: room)
        #expect(room.wait(for: "there is no Bluetooth adapter"))
        room.call { fake.plug(700, isPowered: false) }
        #expect(room.wait(for: "the adapter hci700 is powered off"))
        room.call { fake.change(FakeBluetoothd.path(700), "Powered", .boolean(true)) }
        #expect(room.wait(for: "hci700"))
        room.call { fake.change(FakeBluetoothd.path(700), "Powered", .boolean(false)) }
        #expect(room.wait(for: "the adapter hci700 is powered off", times: 2))
        room.call { fake.unplug(700) }
        #expect(room.wait(for: "there is no Bluetooth adapter", times: 2))
        let generation = room.call { user.bluez.generation }
        room.call { fake.stop() }
        #expect(room.wait(for: "bluetoothd is not running", times: 2))
        let next = try FakeBluetoothd.start(in: room) { $0.plug(700) }
        #expect(room.wait(for: "hci700", times: 2))
        #expect(room.call { user.bluez.generation } > generation)
        user.stop()
        let before = room.notes.count
        room.call { next.unplug(700) }
        room.call {}
        #expect(room.notes.count == before)
        room.call { next.stop() }
    }

    /// A bluetoothd that hangs is ended by nobody, so the bus has nothing to report when it answers again.
    @Test func objectsThatAreRefusedAreReadAgain() throws {
        let room = try BusRoom()
        let fake = try FakeBluetoothd.start(in: room) {
            $0.plug(700)
            $0.refused["GetManagedObjects"] = "org.freedesktop.DBus.Error.NoReply"
        }
        let user = BlueZUser(in: room)
        #expect(room.wait(for: "bluetoothd is not running"))
        room.call { fake.refused = [:] }
        #expect(room.wait(for: "hci700"))
        user.stop()
        room.call { fake.stop() }
    }

    @Test func onlyTheRequestedAdapterIsUsed() throws {
        let room = try BusRoom()
        let fake = try FakeBluetoothd.start(in: room) { $0.plug(700) }
        let user = BlueZUser(in: room, adapter: "hci701")
        #expect(room.wait(for: "there is no adapter hci701"))
        #expect(room.call { user.bluez.availability.fault } == .noSuchAdapter("hci701", known: ["hci700"]))
        room.call { fake.plug(701, isPowered: false) }
        #expect(room.wait(for: "the adapter hci701 is powered off"))
        room.call { fake.change(FakeBluetoothd.path(701), "Powered", .boolean(true)) }
        #expect(room.wait(for: "hci701"))
        room.call { fake.unplug(701) }
        #expect(room.wait(for: "there is no adapter hci701", times: 2))
        #expect(!room.notes.contains("hci700"))
        user.stop()
        room.call { fake.stop() }
    }

    @Test func anAdapterIsReplacedOnlyWhenItBecomesUnavailable() throws {
        let room = try BusRoom()
        let fake = try FakeBluetoothd.start(in: room) {
            $0.plug(701)
            $0.plug(702)
        }
        let user = BlueZUser(in: room)
        #expect(room.wait(for: "hci701"))
        room.call { fake.plug(700) }
        room.call { fake.change(FakeBluetoothd.path(701), "Discoverable", .boolean(true)) }
        #expect(room.wait(for: "hci701, discoverable"))
        #expect(!room.notes.contains("hci700"))
        room.call { fake.change(FakeBluetoothd.path(701), "Powered", .boolean(false)) }
        #expect(room.wait(for: "hci700"))
        #expect(!room.notes.contains("hci702"))
        user.stop()
        room.call { fake.stop() }
    }

    @Test func onlyDevicesOfTheAdapterInUseAreReported() throws {
        let room = try BusRoom()
        let fake = try FakeBluetoothd.start(in: room) {
            $0.plug(700)
            $0.plug(701)
            $0.see(Samples.device, by: 700)
        }
        let user = BlueZUser(in: room)
        #expect(room.wait(for: "hci700"))
        // What was there before is not reported, but known.
        let known = room.call {
            user.bluez.availability.adapter.flatMap { user.bluez.objects?.devices(of: $0) }
        }
        #expect(known?.map(\.address) == [Samples.device])
        let path = FakeBluetoothd.path(Samples.device, of: 700)
        room.call {
            fake.see(Samples.other, by: 701)
            fake.change(path, "RSSI", .number16(50))
        }
        #expect(room.wait(for: "seen \(Samples.device) 50"))
        room.call { fake.change(path, "RSSI", nil) }
        #expect(room.wait(for: "seen \(Samples.device) without a signal"))
        room.call { fake.see(Samples.other, by: 700) }
        #expect(room.wait(for: "seen \(Samples.other) without a signal"))
        room.call {
            fake.forget(Samples.other, by: 701)
            fake.forget(Samples.device, by: 700)
        }
        #expect(room.wait(for: "gone \(Samples.device)"))
        #expect(!room.notes.contains("gone \(Samples.other)"))
        #expect(room.notes.count { $0 == "seen \(Samples.other) without a signal" } == 1)
        user.stop()
        room.call { fake.stop() }
    }

    /// With the bus, bluetoothd goes too, and everything that was registered with it.
    @Test func aLostBusIsReconnected() throws {
        let room = try BusRoom()
        let fake = try FakeBluetoothd.start(in: room) { $0.plug(700) }
        let user = BlueZUser(in: room)
        #expect(room.wait(for: "hci700"))
        let generation = room.call { user.bluez.generation }
        room.daemon.stop()
        let words = "there is no D-Bus system bus, which is needed to talk to bluetoothd"
        #expect(room.wait(for: words))
        room.call { fake.stop() }
        try room.daemon.start()
        let next = try FakeBluetoothd.start(in: room) { $0.plug(700) }
        #expect(room.wait(for: "hci700", times: 2))
        #expect(room.call { user.bluez.generation } > generation)
        #expect(room.notes.count { $0 == words } == 1)
        user.stop()
        room.call { next.stop() }
    }

    @Test func callsWithoutABusFailAndNothingIsReportedAfterTheEnd() throws {
        let room = try BusRoom()
        room.daemon.stop()
        let user = BlueZUser(in: room)
        #expect(room.wait(for: "there is no D-Bus system bus, which is needed to talk to bluetoothd"))
        room.call {
            user.bluez.call("/org/bluez", "org.bluez.AgentManager1", "RegisterAgent") { [weak room] result in
                if case .failure = result { room?.note("failed") }
            }
            #expect(user.bluez.export(at: "/object") { _ in } == nil)
        }
        #expect(room.wait(for: "failed"))
        user.stop()
        room.call {
            user.bluez.call("/org/bluez", "org.bluez.AgentManager1", "RegisterAgent") { [weak room] _ in
                room?.note("told")
            }
        }
        room.call {}
        #expect(!room.notes.contains("told"))
    }
}
