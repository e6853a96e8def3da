import NighCore
import NighTestKit
import Testing

@testable import NighBluetooth

/// Tests the answers that bluetoothd gets when a device wants to pair.
struct PairingAgentTests {
    private static let rejected = "org.bluez.Error.Rejected"
    private static let device = FakeBluetoothd.path(Samples.device, of: 700)

    /// A bluetoothd whose requests this agent answers.
    private struct Ground {
        let scene: BlueZScene
        /// The requests that a person got, with the way to answer each.
        private let requests: Guarded<[(BluetoothPairing.Request, @Sendable (Bool) -> Void)]>

        init(justWorks: Bool = false) throws {
            let scene = try BlueZScene {
                $0.plug(700)
                $0.see(Samples.device, by: 700)
            }
            let requests = Guarded<[(BluetoothPairing.Request, @Sendable (Bool) -> Void)]>([])
            scene.answerPairing(
                justWorks
                    ? .justWorks
                    : .comparison { [room = scene.room] request, answer in
                        requests.withLock { $0.append((request, answer)) }
                        room.note("asked")
                    })
            try #require(scene.wait(for: "RequestDefaultAgent"))
            (self.scene, self.requests) = (scene, requests)
        }

        /// Calls the agent as bluetoothd does.
        func call(_ member: String, _ arguments: [BusArgument] = []) {
            scene.call { fake in
                guard let registration = fake.calls(of: "RegisterAgent").last else { return }
                let path = registration.values[0].text ?? ""
                fake.callBack(registration, path: path, "org.bluez.Agent1", member, arguments)
            }
        }

        /// The ability of the person's device that the agent stated to bluetoothd.
        var ability: String? { scene.call { $0.calls[0].values[1].text } }

        func wait(for note: String, times: Int = 1) -> Bool { scene.wait(for: note, times: times) }

        func request(_ index: Int) -> BluetoothPairing.Request { requests.withLock { $0[index].0 } }

        func answer(_ index: Int, _ isAccepted: Bool) {
            let answer = requests.withLock { $0[index].1 }
            scene.room.call { answer(isAccepted) }
        }
    }

    @Test func `A person compares digits`() throws {
        let ground = try Ground()
        #expect(ground.ability == "DisplayYesNo")
        ground.call("RequestConfirmation", [.path(Self.device), .number32(42)])
        try #require(ground.wait(for: "asked"))
        #expect(ground.request(0).digits == "000042")
        #expect(ground.request(0).device == "\(Samples.device)")
        // Meanwhile, no other request is granted.
        ground.call("RequestAuthorization", [.path(Self.device)])
        #expect(ground.wait(for: "RequestAuthorization was refused: \(Self.rejected)"))
        for isAccepted in [true, false] { ground.answer(0, isAccepted) }
        #expect(ground.wait(for: "RequestConfirmation was answered"))
        ground.call("AuthorizeService", [.path(Self.device), .text("uuid")])
        try #require(ground.wait(for: "asked", times: 2))
        #expect(ground.request(1).digits == nil)
        ground.answer(1, false)
        #expect(ground.wait(for: "AuthorizeService was refused: \(Self.rejected)"))
    }

    @Test func `A cancelled request is not answered`() throws {
        let ground = try Ground()
        ground.call("RequestAuthorization", [.path(Self.device)])
        try #require(ground.wait(for: "asked"))
        ground.call("Cancel")
        #expect(ground.wait(for: "Cancel was answered"))
        ground.answer(0, true)
        ground.call("RequestAuthorization", [.path("/unknown/device")])
        try #require(ground.wait(for: "asked", times: 2))
        #expect(ground.request(1).device == "/unknown/device")
        ground.answer(1, true)
        #expect(ground.wait(for: "RequestAuthorization was answered"))
    }

    @Test func `Methods that the agent does not support are refused`() throws {
        let ground = try Ground()
        for member in [
            "RequestPinCode", "RequestPasskey", "DisplayPinCode", "RequestConfirmation", "Nonsense",
        ] {
            ground.call(member, [.path(Self.device)])
            #expect(ground.wait(for: "\(member) was refused: org.freedesktop.DBus.Error.UnknownMethod"))
        }
        #expect(!ground.scene.room.notes.contains("asked"))
    }

    @Test func `Just-works pairing accepts every device`() throws {
        let ground = try Ground(justWorks: true)
        #expect(ground.ability == "NoInputNoOutput")
        ground.call("RequestAuthorization", [.path(Self.device)])
        #expect(ground.wait(for: "RequestAuthorization was answered"))
    }

    @Test func `The agent is registered with each new bluetoothd`() throws {
        let ground = try Ground()
        try ground.scene.restart()
        #expect(ground.wait(for: "RequestDefaultAgent", times: 2))
        #expect(ground.scene.members == ["RegisterAgent", "RequestDefaultAgent"])
        // The next one waits for the name, and gets it from the bus when the one before ends.
        let heir = try FakeBluetoothd.start(in: ground.scene.room) { $0.plug(700) }
        ground.scene.call { $0.stop() }
        #expect(ground.wait(for: "RequestDefaultAgent", times: 3))
        ground.scene.room.call {
            #expect(heir.calls.map(\.member) == ["RegisterAgent", "RequestDefaultAgent"])
            heir.stop()
        }
    }

    @Test func `A stopped agent refuses requests`() throws {
        let ground = try Ground()
        ground.call("RequestAuthorization", [.path(Self.device)])
        try #require(ground.wait(for: "asked"))
        ground.scene.stopAnsweringPairing()
        #expect(
            ground.wait(for: "RequestAuthorization was refused: org.freedesktop.DBus.Error.UnknownMethod"))
        ground.answer(0, true)
        ground.call("Cancel")
        #expect(ground.wait(for: "Cancel was refused: org.freedesktop.DBus.Error.UnknownObject"))
    }
}
