import Testing

@testable import NighBluetooth

/// Tests the answers that bluetoothd gets when a device wants to pair.
struct PairingAgentTests {
    private static let interface = "org.bluez.Agent1"
    private static let rejected = "org.bluez.Error.Rejected"
    private static let device = FakeBluetoothd.path(Samples.device, of: 700)

    /// A person, and the requests the person got. `@unchecked Sendable`: confined to the loop.
    private final class Person: @unchecked Sendable {
        var requests: [BluetoothPairing.Request] = []
        var answers: [@Sendable (Bool) -> Void] = []
    }

    private struct Scene {
        let room: BusRoom
        let fake: FakeBluetoothd
        let user: BlueZUser
        let person = Person()

        init() throws {
            room = try BusRoom()
            fake = try FakeBluetoothd.start(in: room) {
                $0.plug(700)
                $0.see(Samples.device, by: 700)
            }
            user = BlueZUser(in: room)
            user.answerPairing(
                .comparison { [room, person] request, answer in
                    person.requests.append(request)
                    person.answers.append(answer)
                    room.note("asked")
                })
            try #require(room.wait(for: "RequestDefaultAgent"))
        }

        func call(_ member: String, _ arguments: [BusArgument] = []) {
            let fake = fake
            room.call {
                guard let registration = fake.calls(of: "RegisterAgent").last else { return }
                let path = registration.values[0].text ?? ""
                fake.callBack(registration, path: path, PairingAgentTests.interface, member, arguments)
            }
        }

        var ability: String? { room.call { [fake] in fake.calls[0].values[1].text } }

        func request(_ index: Int) -> BluetoothPairing.Request {
            room.call { [person] in person.requests[index] }
        }

        func answer(_ index: Int, _ isAccepted: Bool) {
            room.call { [person] in person.answers[index](isAccepted) }
        }

        func end() {
            user.stop()
            room.call { [fake] in fake.stop() }
        }
    }

    @Test func aPersonComparesDigits() throws {
        let scene = try Scene()
        #expect(scene.ability == "DisplayYesNo")
        scene.call("RequestConfirmation", [.path(Self.device), .number32(42)])
        try #require(scene.room.wait(for: "asked"))
        #expect(scene.request(0).digits == "000042")
        #expect(scene.request(0).device == "\(Samples.device)")
        // Meanwhile, no other request is granted.
        scene.call("RequestAuthorization", [.path(Self.device)])
        #expect(scene.room.wait(for: "RequestAuthorization was refused: \(Self.rejected)"))
        for isAccepted in [true, false] { scene.answer(0, isAccepted) }
        #expect(scene.room.wait(for: "RequestConfirmation was answered"))
        scene.call("AuthorizeService", [.path(Self.device), .text("uuid")])
        try #require(scene.room.wait(for: "asked", times: 2))
        #expect(scene.request(1).digits == nil)
        scene.answer(1, false)
        #expect(scene.room.wait(for: "AuthorizeService was refused: \(Self.rejected)"))
        scene.end()
    }

    @Test func cancelledRequestsAreNotAnswered() throws {
        let scene = try Scene()
        scene.call("RequestAuthorization", [.path(Self.device)])
        try #require(scene.room.wait(for: "asked"))
        scene.call("Cancel")
        #expect(scene.room.wait(for: "Cancel was answered"))
        scene.answer(0, true)
        scene.call("RequestAuthorization", [.path("/unknown/device")])
        try #require(scene.room.wait(for: "asked", times: 2))
        #expect(scene.request(1).device == "/unknown/device")
        scene.answer(1, true)
        #expect(scene.room.wait(for: "RequestAuthorization was answered"))
        scene.end()
    }

    @Test(arguments: [
        "RequestPinCode", "RequestPasskey", "DisplayPinCode", "RequestConfirmation", "Nonsense",
    ])
    func unsupportedMethodsAreRefused(_ member: String) throws {
        let scene = try Scene()
        scene.call(member, [.path(Self.device)])
        #expect(scene.room.wait(for: "\(member) was refused: org.freedesktop.DBus.Error.UnknownMethod"))
        #expect(!scene.room.notes.contains("asked"))
        scene.end()
    }

    @Test func justWorksAcceptsEveryDevice() throws {
        let room = try BusRoom()
        let fake = try FakeBluetoothd.start(in: room) { $0.plug(700) }
        let user = BlueZUser(in: room)
        user.answerPairing(.justWorks)
        try #require(room.wait(for: "RequestDefaultAgent"))
        room.call {
            let call = fake.calls(of: "RegisterAgent")[0]
            #expect(call.values[1].text == "NoInputNoOutput")
            fake.callBack(
                call, path: call.values[0].text ?? "", Self.interface, "RequestAuthorization",
                [.path(Self.device)])
        }
        #expect(room.wait(for: "RequestAuthorization was answered"))
        user.stop()
        room.call { fake.stop() }
    }

    @Test func theAgentIsRegisteredWithARestartedBluetoothd() throws {
        let scene = try Scene()
        scene.room.call { [fake = scene.fake] in fake.stop() }
        let next = try FakeBluetoothd.start(in: scene.room) { $0.plug(700) }
        #expect(scene.room.wait(for: "RequestDefaultAgent", times: 2))
        let members = scene.room.call { next.calls.map(\.member) }
        #expect(members == ["RegisterAgent", "RequestDefaultAgent"])
        scene.user.stop()
        scene.room.call { next.stop() }
    }

    @Test func theAgentIsRegisteredWithABluetoothdThatTakesOverTheName() throws {
        let scene = try Scene()
        // It waits for the name, and gets it from the bus when the other one ends.
        let next = try FakeBluetoothd.start(in: scene.room) { $0.plug(700) }
        scene.room.call { [fake = scene.fake] in fake.stop() }
        #expect(scene.room.wait(for: "RequestDefaultAgent", times: 2))
        let members = scene.room.call { next.calls.map(\.member) }
        #expect(members == ["RegisterAgent", "RequestDefaultAgent"])
        scene.user.stop()
        scene.room.call { next.stop() }
    }

    @Test func aStoppedAgentRefusesRequests() throws {
        let scene = try Scene()
        scene.call("RequestAuthorization", [.path(Self.device)])
        try #require(scene.room.wait(for: "asked"))
        scene.user.stopAnsweringPairing()
        #expect(
            scene.room.wait(for: "RequestAuthorization was refused: org.freedesktop.DBus.Error.UnknownMethod")
        )
        scene.answer(0, true)
        scene.call("Cancel")
        #expect(scene.room.wait(for: "Cancel was refused: org.freedesktop.DBus.Error.UnknownObject"))
        scene.end()
    }
}
