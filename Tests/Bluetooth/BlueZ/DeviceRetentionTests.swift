import Testing

@testable import NighBluetooth

/// Tests that bluetoothd removes no device that has an open pipe, because removing it would cut the pipe.
struct DeviceRetentionTests {
    private static let device = BluetoothAddress(number: 0x00AA_0300_0001)
    private static let other = BluetoothAddress(number: 0x00AA_0300_0002)
    private static let path = FakeBluetoothd.path(device, of: 700)

    /// Starts a bluetoothd with one adapter, which sees these devices.
    private static func scene(
        seeing devices: [BluetoothAddress] = [], refusing refusal: String? = nil
    ) throws -> BlueZScene {
        let scene = try BlueZScene {
            $0.plug(700)
            for device in devices { $0.see(device, by: 700) }
            if let refusal { $0.refused = ["ConnectProfile": refusal] }
        }
        try #require(scene.wait(for: "hci700"))
        return scene
    }

    /// The devices that bluetoothd was asked to connect to, and therefore keeps.
    private static func asked(_ fake: FakeBluetoothd) -> [String] {
        fake.calls(of: "ConnectProfile").map(\.path)
    }

    @Test func `A device is retained once a pipe leads to it, and no other device is`() throws {
        let scene = try Self.scene(
            seeing: [Self.device, Self.other], refusing: "org.bluez.Error.NotAvailable")
        scene.openPipe(to: Self.device)
        scene.openPipe(to: Self.device)
        try #require(scene.waitForAnswers())
        #expect(scene.call(Self.asked) == [Self.path])
    }

    @Test func `A device that bluetoothd reports after its pipe was accepted is retained`() throws {
        let scene = try Self.scene()
        scene.openPipe(to: Self.device)
        scene.openPipe(to: Self.other)
        scene.endPipe(to: Self.other)
        scene.call {
            $0.see(Self.other, by: 700)
            $0.see(Self.device, by: 700)
        }
        try #require(scene.wait(for: "ConnectProfile"))
        // A device that a person has removed, and that is seen again, is temporary again.
        scene.call { $0.forget(Self.device, by: 700) }
        scene.call { $0.see(Self.device, by: 700) }
        #expect(scene.wait(for: "ConnectProfile", times: 2))
        #expect(scene.call(Self.asked) == [Self.path, Self.path])
    }

    @Test func `If bluetoothd is busy with the device, the request is repeated`() throws {
        let scene = try Self.scene(seeing: [Self.device], refusing: "org.bluez.Error.InProgress")
        scene.openPipe(to: Self.device)
        try #require(scene.wait(for: "ConnectProfile"))
        scene.call { $0.refused = [:] }
        #expect(scene.wait(for: "ConnectProfile", times: 2))
    }

    @Test func `A new bluetoothd is asked too, and none for a device that it retains anyway`() throws {
        let scene = try Self.scene(seeing: [Self.device, Self.other])
        scene.call { $0.change(FakeBluetoothd.path(Self.other, of: 700), "Bonded", .boolean(true)) }
        try #require(scene.wait(for: "seen \(Self.other) without a signal"))
        scene.openPipe(to: Self.other)
        scene.openPipe(to: Self.device)
        try #require(scene.wait(for: "ConnectProfile"))
        let old = try #require(
            try scene.restart {
                $0.plug(700)
                $0.see(Self.device, by: 700)
            })
        #expect(scene.wait(for: "ConnectProfile", times: 2))
        #expect(scene.call { Self.asked(old) + Self.asked($0) } == [Self.path, Self.path])
    }
}
