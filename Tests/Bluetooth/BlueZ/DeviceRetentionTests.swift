import Testing

@testable import NighBluetooth

/// Tests that bluetoothd removes no device that has an open pipe, because removing it would cut the pipe.
struct DeviceRetentionTests {
    private static let device = BluetoothAddress(number: 0x00AA_0300_0001)
    private static let other = BluetoothAddress(number: 0x00AA_0300_0002)

    /// The devices that bluetoothd was asked to connect to, and therefore keeps.
    private static func asked(_ fake: FakeBluetoothd, in room: BusRoom) -> [String] {
        room.call { fake.calls(of: "ConnectProfile").map(\.path) }
    }

    @Test("A device is retained once a pipe leads to it, and no other device is")
    func keptWhileAPipeLeadsToIt() throws {
        let room = try BusRoom()
        let fake = try FakeBluetoothd.start(in: room) {
            $0.plug(700)
            $0.see(Self.device, by: 700)
            $0.see(Self.other, by: 700)
            $0.refused = ["ConnectProfile": "org.bluez.Error.NotAvailable"]
        }
        let user = BlueZUser(in: room)
        try #require(room.wait(for: "hci700"))
        user.openPipe(to: Self.device)
        user.openPipe(to: Self.device)
        try #require(user.waitForAnswers())
        #expect(Self.asked(fake, in: room) == [FakeBluetoothd.path(Self.device, of: 700)])
        user.stop()
        room.call { fake.stop() }
    }

    @Test("A device that bluetoothd reports after its pipe was accepted is retained")
    func keptOnceItIsSeen() throws {
        let room = try BusRoom()
        let fake = try FakeBluetoothd.start(in: room) { $0.plug(700) }
        let user = BlueZUser(in: room)
        try #require(room.wait(for: "hci700"))
        user.openPipe(to: Self.device)
        user.openPipe(to: Self.other)
        user.endPipe(to: Self.other)
        room.call {
            fake.see(Self.other, by: 700)
            fake.see(Self.device, by: 700)
        }
        try #require(room.wait(for: "ConnectProfile"))
        // A device that a person has removed, and that is seen again, is temporary again.
        room.call { fake.forget(Self.device, by: 700) }
        room.call { fake.see(Self.device, by: 700) }
        #expect(room.wait(for: "ConnectProfile", times: 2))
        #expect(Set(Self.asked(fake, in: room)) == [FakeBluetoothd.path(Self.device, of: 700)])
        user.stop()
        room.call { fake.stop() }
    }

    @Test("If bluetoothd is busy with the device, the request is repeated")
    func askedAgainWhereBusy() throws {
        let room = try BusRoom()
        let fake = try FakeBluetoothd.start(in: room) {
            $0.plug(700)
            $0.see(Self.device, by: 700)
            $0.refused = ["ConnectProfile": "org.bluez.Error.InProgress"]
        }
        let user = BlueZUser(in: room)
        try #require(room.wait(for: "hci700"))
        user.openPipe(to: Self.device)
        try #require(room.wait(for: "ConnectProfile"))
        room.call { fake.refused = [:] }
        #expect(room.wait(for: "ConnectProfile", times: 2))
        user.stop()
        room.call { fake.stop() }
    }

    @Test("A new bluetoothd is asked too; none is asked for a device that it retains anyway")
    func theNextBluetoothdIsAsked() throws {
        let room = try BusRoom()
        let fake = try FakeBluetoothd.start(in: room) {
            $0.plug(700)
            $0.see(Self.device, by: 700)
            $0.see(Self.other, by: 700)
            $0.change(FakeBluetoothd.path(Self.other, of: 700), "Bonded", .boolean(true))
        }
        let user = BlueZUser(in: room)
        try #require(room.wait(for: "hci700"))
        user.openPipe(to: Self.other)
        user.openPipe(to: Self.device)
        try #require(room.wait(for: "ConnectProfile"))
        room.call { fake.stop() }
        let next = try FakeBluetoothd.start(in: room) {
            $0.plug(700)
            $0.see(Self.device, by: 700)
        }
        #expect(room.wait(for: "ConnectProfile", times: 2))
        let path = FakeBluetoothd.path(Self.device, of: 700)
        #expect(Self.asked(fake, in: room) + Self.asked(next, in: room) == [path, path])
        user.stop()
        room.call { next.stop() }
    }
}
