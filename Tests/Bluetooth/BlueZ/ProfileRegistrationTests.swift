import NighCore
import Testing

@testable import NighBluetooth

/// Tests that a record stays registered with bluetoothd when bluetoothd restarts or the record changes.
struct ProfileRegistrationTests {
    private static func record(_ name: String = "Puma") -> SessionRecord {
        Samples.sessionRecord(name: name, handle: 0)
    }

    /// The names of the records that were registered, and the paths that were unregistered.
    private func history(_ fake: FakeBluetoothd) -> (
        registered: [(path: String, name: String)], ended: [String]
    ) {
        let registered = fake.calls(of: "RegisterProfile").map { call in
            let text = call.values[2].entries?["ServiceRecord"]?.text ?? ""
            let record = try? KeptRecord(xml: text, handle: 0)
            guard case .text(let name)? = record?.value(of: 0x0100) else {
                return (call.values[0].text ?? "", "")
            }
            return (call.values[0].text ?? "", String(decoding: name, as: UTF8.self))
        }
        return (registered, fake.calls(of: "UnregisterProfile").compactMap { $0.values.first?.text })
    }

    @Test func aRecordIsRegisteredInTheFormThatBluetoothdRequires() throws {
        let room = try BusRoom()
        let fake = try FakeBluetoothd.start(in: room) { $0.plug(700) }
        let user = BlueZUser(in: room)
        user.publish(Self.record())
        try #require(room.wait(for: "registered"))
        let values = room.call { fake.calls(of: "RegisterProfile")[0].values }
        #expect(values[0].text?.hasPrefix("/nigh/") == true)
        // A UUID of its own, because bluetoothd accepts each only once. The UUID that others search for is in the
        // record.
        #expect(values[1].text != BluetoothUUID(of: Samples.service).description)
        let options = try #require(values[2].entries)
        #expect(options["Role"] == .text("server"))
        #expect(options["RequireAuthentication"] == .boolean(false))
        #expect(options["RequireAuthorization"] == .boolean(false))
        #expect(options["ServiceRecord"] == .text(Self.record().xml))
        #expect(options["Channel"] == nil)
        // The same record again causes no call.
        user.publish(Self.record())
        room.call { user.availabilityChanged(from: .unknown) }
        #expect(room.call { fake.calls.count } == 1)
        user.stop()
        room.call { fake.stop() }
    }

    @Test func aNewRecordIsRegisteredBeforeTheOldOneIsRemoved() throws {
        let room = try BusRoom()
        let fake = try FakeBluetoothd.start(in: room) { $0.plug(700) }
        let user = BlueZUser(in: room)
        user.publish(Self.record("old"))
        try #require(room.wait(for: "registered"))
        user.publish(Self.record("new"))
        try #require(room.wait(for: "UnregisterProfile"))
        #expect(
            room.call { fake.calls.map(\.member) } == [
                "RegisterProfile", "RegisterProfile", "UnregisterProfile",
            ])
        let history = room.call { self.history(fake) }
        #expect(history.registered.map(\.name) == ["old", "new"])
        #expect(history.registered[0].path != history.registered[1].path)
        #expect(history.ended == [history.registered[0].path])
        user.publish(nil)
        try #require(room.wait(for: "UnregisterProfile", times: 2))
        #expect(room.call { self.history(fake).ended.last } == history.registered[1].path)
        user.stop()
        room.call { fake.stop() }
    }

    @Test func onlyTheLastOfSeveralQuickChangesIsRegistered() throws {
        let room = try BusRoom()
        let fake = try FakeBluetoothd.start(in: room) {
            $0.plug(700)
            $0.held = ["RegisterProfile"]
        }
        let user = BlueZUser(in: room)
        user.publish(Self.record("a"))
        try #require(room.wait(for: "RegisterProfile"))
        for name in ["b", "c"] { user.publish(Self.record(name)) }
        room.call { fake.release() }
        try #require(room.wait(for: "UnregisterProfile"))
        let history = room.call { self.history(fake) }
        #expect(history.registered.map(\.name) == ["a", "c"])
        #expect(history.ended == [history.registered[0].path])
        #expect(room.notes.count { $0 == "registered" } == 1)
        user.stop()
        room.call { fake.stop() }
    }

    @Test func aRecordWithdrawnDuringItsRegistrationIsRemoved() throws {
        let room = try BusRoom()
        let fake = try FakeBluetoothd.start(in: room) {
            $0.plug(700)
            $0.held = ["RegisterProfile"]
        }
        let user = BlueZUser(in: room)
        user.publish(Self.record())
        try #require(room.wait(for: "RegisterProfile"))
        user.publish(nil)
        room.call { fake.release() }
        #expect(room.wait(for: "UnregisterProfile"))
        #expect(!room.notes.contains("registered"))
        user.stop()
        room.call { fake.stop() }
    }

    @Test func aProfileIsRegisteredAgainWithARestartedBluetoothd() throws {
        let room = try BusRoom()
        let fake = try FakeBluetoothd.start(in: room) { $0.plug(700) }
        let user = BlueZUser(in: room)
        user.publish(Self.record())
        try #require(room.wait(for: "registered"))
        room.call { fake.stop() }
        let next = try FakeBluetoothd.start(in: room) { $0.plug(700) }
        try #require(room.wait(for: "registered", times: 2))
        #expect(room.call { next.calls.map(\.member) } == ["RegisterProfile"])
        user.stop()
        room.call { next.stop() }
    }

    @Test func aRegistrationThatBluetoothdInterruptedIsRepeated() throws {
        let room = try BusRoom()
        let fake = try FakeBluetoothd.start(in: room) {
            $0.plug(700)
            $0.held = ["RegisterProfile"]
        }
        let user = BlueZUser(in: room)
        user.publish(Self.record())
        try #require(room.wait(for: "RegisterProfile"))
        room.call { fake.stop() }
        let next = try FakeBluetoothd.start(in: room) { $0.plug(700) }
        #expect(room.wait(for: "registered"))
        let failures = Set(room.notes.filter { $0.hasPrefix("failed") })
        #expect(failures.isSubset(of: ["failed: bluetoothd is not running"]))
        user.stop()
        room.call { next.stop() }
    }

    @Test func aRefusalIsReportedAndRetried() throws {
        let room = try BusRoom()
        let fake = try FakeBluetoothd.start(in: room) {
            $0.plug(700)
            $0.refused = ["RegisterProfile": "org.bluez.Error.NotPermitted"]
        }
        let user = BlueZUser(in: room)
        user.publish(Self.record())
        try #require(room.wait(for: "failed: this user is not allowed to use bluetoothd: the fake says no"))
        room.call { fake.refused = [:] }
        #expect(room.wait(for: "registered"))
        #expect(room.call { fake.calls(of: "RegisterProfile").count } >= 2)
        user.stop()
        room.call { fake.stop() }
    }

    /// What was registered over the old bus is gone, and no event reports that.
    @Test func aProfileIsRegisteredAgainOnANewBus() throws {
        let room = try BusRoom()
        let fake = try FakeBluetoothd.start(in: room) { $0.plug(700) }
        let user = BlueZUser(in: room)
        user.publish(Self.record())
        try #require(room.wait(for: "registered"))
        room.daemon.stop()
        try #require(room.wait(for: "there is no D-Bus system bus, which is needed to talk to bluetoothd"))
        room.call { fake.stop() }
        // All of it is there again before this side looks.
        try room.daemon.start()
        let next = try FakeBluetoothd.start(in: room) { $0.plug(700) }
        #expect(room.wait(for: "registered", times: 2))
        user.stop()
        room.call { next.stop() }
    }

    @Test func aReleaseByBluetoothdIsAnswered() throws {
        let room = try BusRoom()
        let fake = try FakeBluetoothd.start(in: room) { $0.plug(700) }
        let user = BlueZUser(in: room)
        user.publish(Self.record())
        try #require(room.wait(for: "registered"))
        room.call {
            let call = fake.calls(of: "RegisterProfile")[0]
            let path = call.values[0].text ?? ""
            fake.callBack(call, path: path, "org.bluez.Profile1", "NewConnection")
            fake.callBack(call, path: path, "org.bluez.Profile1", "Release")
        }
        #expect(room.wait(for: "Release was answered"))
        #expect(room.wait(for: "NewConnection was refused: org.freedesktop.DBus.Error.UnknownMethod"))
        user.stop()
        room.call { fake.stop() }
    }
}
