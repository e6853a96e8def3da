import NighCore
import NighTestKit
import NighUV

@testable import NighBluetooth

/// A fake bluetoothd on a private bus, and a program that follows it. Notes the events that the program gets, and
/// passes them to the parts that a test has set up. Everything ends with the last reference.
///
/// `@unchecked Sendable`: confined to the loop, except for the notes.
final class BlueZScene: BlueZEvents, @unchecked Sendable {
    static let noBus = "there is no D-Bus system bus, which is needed to talk to bluetoothd"

    let room: BusRoom
    private(set) var fake: FakeBluetoothd!
    private(set) var bluez: BlueZ!
    private var registration: ProfileRegistration?
    private var agent: PairingAgent?
    private lazy var discoverability = Discoverability(bluez, on: room.loop)
    private lazy var retention = DeviceRetention(bluez, on: room.loop)

    /// Starts a program that uses this adapter or any, beside a bluetoothd with the adapter hci700, unless told
    /// otherwise.
    init(
        adapter: String? = nil, isRunning: Bool = true,
        _ prepare: @escaping @Sendable (FakeBluetoothd) -> Void = { $0.plug(700) }
    ) throws {
        room = try BusRoom()
        if isRunning { fake = try FakeBluetoothd.start(in: room, prepare) }
        let address = room.daemon.address
        room.call { [self] in bluez = BlueZ(on: room.loop, adapter: adapter, bus: address, events: self) }
    }

    deinit {
        room.call { [agent, bluez, fake] in
            agent?.stop()
            bluez?.stop()
            fake?.stop()
        }
    }

    /// Calls bluetoothd on the loop.
    @discardableResult
    func call<Result>(_ body: @escaping (FakeBluetoothd) -> Result) -> Result {
        room.call { [self] in body(fake) }
    }

    /// Ends bluetoothd, if it runs, and starts another one. Returns the one before.
    @discardableResult
    func restart(
        _ prepare: @escaping @Sendable (FakeBluetoothd) -> Void = { $0.plug(700) }
    ) throws -> FakeBluetoothd? {
        let old = fake
        room.call { old?.stop() }
        fake = try FakeBluetoothd.start(in: room, prepare)
        return old
    }

    /// Waits up to 20 s; returns whether `note` was noted at least `times` times.
    func wait(for note: String, times: Int = 1) -> Bool { room.wait(for: note, times: times) }

    /// Waits until all earlier calls are answered: bluetoothd answers in order.
    func waitForAnswers() -> Bool {
        room.call { [self] in
            bluez.call("/", "org.freedesktop.DBus.ObjectManager", "GetManagedObjects") {
                [room] _ in room.note("answered")
            }
        }
        return wait(for: "answered")
    }

    /// The members of all calls that bluetoothd got.
    var members: [String] { call { $0.calls.map(\.member) } }

    /// Stops following bluetoothd. Nothing is noted afterwards.
    func stopFollowing() { room.call { [self] in bluez.stop() } }

    /// Keeps this record registered, or none.
    func publish(_ record: SessionRecord?) {
        room.call { [self] in
            let registration =
                registration
                ?? ProfileRegistration(
                    bluez, on: room.loop, registered: { [room] in room.note("registered") },
                    failed: { [room] in room.note("failed: \($0.cause)") })
            self.registration = registration
            registration.setWanted(record)
        }
    }

    func beDiscoverable(_ isWanted: Bool) { room.call { [self] in discoverability.setWanted(isWanted) } }

    var discoverabilityRefusal: BusFault? { room.call { [self] in discoverability.refusal } }

    func answerPairing(_ pairing: BluetoothPairing) {
        room.call { [self] in
            agent = PairingAgent(bluez, pairing, on: room.loop)
            agent?.availabilityChanged()
        }
    }

    func stopAnsweringPairing() { room.call { [self] in agent?.stop() } }

    /// Acts as if there were a pipe to the device, so that bluetoothd keeps the device.
    func openPipe(to device: BluetoothAddress) { room.call { [self] in retention.pipeOpened(to: device) } }

    func endPipe(to device: BluetoothAddress) { room.call { [self] in retention.pipeEnded(to: device) } }

    // MARK: Events

    func availabilityChanged(from old: BlueZ.Availability) {
        registration?.availabilityChanged()
        discoverability.availabilityChanged()
        agent?.availabilityChanged()
        retention.availabilityChanged()
        switch bluez.availability {
        case .unknown: room.note("unknown")
        case .missing(let fault): room.note("\(fault.cause)")
        case .adapter(let adapter):
            room.note(adapter.isDiscoverable ? "\(adapter.name), discoverable" : adapter.name)
        }
    }

    func deviceSeen(_ device: BlueZObjects.Device) {
        retention.deviceSeen(device)
        room.note("seen \(device.address) \(device.signal.map(String.init) ?? "without a signal")")
    }

    func deviceGone(_ device: BlueZObjects.Device) {
        retention.deviceGone(device)
        room.note("gone \(device.address)")
    }
}
