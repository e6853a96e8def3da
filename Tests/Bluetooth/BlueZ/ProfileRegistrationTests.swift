import NighCore
import Testing

@testable import NighBluetooth

/// Tests that a record stays registered with bluetoothd when bluetoothd restarts or the record changes.
struct ProfileRegistrationTests {
    private static func record(_ name: String = "Puma") -> SessionRecord {
        Samples.sessionRecord(name: name, handle: 0)
    }

    /// Starts a program that publishes a record, and waits for `note`.
    private func scene(
        publishing name: String = "Puma", until note: String = "registered", isHeld: Bool = false
    ) throws -> BlueZScene {
        let scene = try BlueZScene {
            $0.plug(700)
            if isHeld { $0.held = ["RegisterProfile"] }
        }
        scene.publish(Self.record(name))
        try #require(scene.wait(for: note))
        return scene
    }

    /// The records that were registered, each with its path and name, and the paths that were unregistered.
    private func history(_ scene: BlueZScene) throws -> (
        registered: [(path: String, name: String)], ended: [String]
    ) {
        let calls = scene.call { fake in
            [fake.calls(of: "RegisterProfile"), fake.calls(of: "UnregisterProfile")].map { $0.map(\.values) }
        }
        let registered = try calls[0].map { values in
            let text = try #require(values[2].entries?["ServiceRecord"]?.text)
            guard case .text(let name)? = try KeptRecord(xml: text, handle: 0).value(of: 0x0100) else {
                return (values[0].text ?? "", "")
            }
            return (values[0].text ?? "", String(decoding: name, as: UTF8.self))
        }
        return (registered, calls[1].compactMap { $0.first?.text })
    }

    @Test func `A record is registered once, in the form that bluetoothd requires`() throws {
        let scene = try scene()
        let values = scene.call { $0.calls(of: "RegisterProfile")[0].values }
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
        // A record that has not changed causes no call.
        scene.publish(Self.record())
        scene.room.call { scene.availabilityChanged(from: .unknown) }
        #expect(scene.members.count == 1)
    }

    @Test func `A new record is registered before the old one is removed`() throws {
        let scene = try scene(publishing: "old")
        scene.publish(Self.record("new"))
        try #require(scene.wait(for: "UnregisterProfile"))
        #expect(scene.members == ["RegisterProfile", "RegisterProfile", "UnregisterProfile"])
        let (registered, ended) = try history(scene)
        #expect(registered.map(\.name) == ["old", "new"])
        #expect(registered[0].path != registered[1].path)
        #expect(ended == [registered[0].path])
        scene.publish(nil)
        try #require(scene.wait(for: "UnregisterProfile", times: 2))
        #expect(try history(scene).ended.last == registered[1].path)
    }

    @Test func `Only the last of several quick changes is registered`() throws {
        let scene = try scene(publishing: "a", until: "RegisterProfile", isHeld: true)
        for name in ["b", "c"] { scene.publish(Self.record(name)) }
        scene.call { $0.release() }
        try #require(scene.wait(for: "UnregisterProfile"))
        let (registered, ended) = try history(scene)
        #expect(registered.map(\.name) == ["a", "c"])
        #expect(ended == [registered[0].path])
        #expect(scene.room.notes.count { $0 == "registered" } == 1)
    }

    @Test func `A record that is withdrawn during its registration is removed`() throws {
        let scene = try scene(until: "RegisterProfile", isHeld: true)
        scene.publish(nil)
        scene.call { $0.release() }
        #expect(scene.wait(for: "UnregisterProfile"))
        #expect(!scene.room.notes.contains("registered"))
    }

    @Test func `A record is registered again with a new bluetoothd`() throws {
        let scene = try scene()
        try scene.restart()
        try #require(scene.wait(for: "registered", times: 2))
        #expect(scene.members == ["RegisterProfile"])
    }

    @Test func `A registration that the end of bluetoothd interrupted is repeated`() throws {
        let scene = try scene(until: "RegisterProfile", isHeld: true)
        try scene.restart()
        #expect(scene.wait(for: "registered"))
        let failures = Set(scene.room.notes.filter { $0.hasPrefix("failed") })
        #expect(failures.isSubset(of: ["failed: bluetoothd is not running"]))
    }

    @Test func `A refusal is reported, and the registration is tried again`() throws {
        let scene = try BlueZScene {
            $0.plug(700)
            $0.refused = ["RegisterProfile": "org.bluez.Error.NotPermitted"]
        }
        scene.publish(Self.record())
        try #require(
            scene.wait(for: "failed: this user is not allowed to use bluetoothd: the fake says no"))
        scene.call { $0.refused = [:] }
        #expect(scene.wait(for: "registered"))
        #expect(scene.members.count >= 2)
    }

    @Test func `A release by bluetoothd is answered, and anything else refused`() throws {
        let scene = try scene()
        scene.call { fake in
            let call = fake.calls(of: "RegisterProfile")[0]
            for member in ["NewConnection", "Release"] {
                fake.callBack(call, path: call.values[0].text ?? "", "org.bluez.Profile1", member)
            }
        }
        #expect(scene.wait(for: "Release was answered"))
        #expect(scene.wait(for: "NewConnection was refused: org.freedesktop.DBus.Error.UnknownMethod"))
    }
}
