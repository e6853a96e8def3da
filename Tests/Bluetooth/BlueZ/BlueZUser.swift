import NighCore
import NighUV

@testable import NighBluetooth

/// Follows bluetoothd: notes the events it gets, and passes them to the parts that a test has set up. `@unchecked
/// Sendable`: confined to the loop, except for the notes.
final class BlueZUser: BlueZEvents, @unchecked Sendable {
    private let room: BusRoom
    private(set) var bluez: BlueZ!
    private var registration: ProfileRegistration?
    private var discoverability: Discoverability?
    private var agent: PairingAgent?
    private var retention: DeviceRetention?

    init(in room: BusRoom, adapter: String? = nil) {
        self.room = room
        let address = room.daemon.address
        room.call {
            self.bluez = BlueZ(on: room.loop, adapter: adapter, bus: address, events: self)
        }
    }

    /// Stops following bluetoothd. Nothing is noted afterwards.
    func stop() {
        room.call {
            self.agent?.stop()
            self.bluez.stop()
        }
    }

    /// Waits until all earlier calls are answered: bluetoothd answers in order.
    func waitForAnswers() -> Bool {
        room.call {
            self.bluez.call("/", "org.freedesktop.DBus.ObjectManager", "GetManagedObjects") {
                [room = self.room] _ in room.note("answered")
            }
        }
        return room.wait(for: "answered")
    }

    /// Keeps this record registered, or none.
    func publish(_ record: SessionRecord?) {
        room.call {
            let registration =
                self.registration
                ?? ProfileRegistration(
                    self.bluez, on: self.room.loop,
                    registered: { [room = self.room] in room.note("registered") },
                    failed: { [room = self.room] in room.note("failed: \($0.cause)") })
            self.registration = registration
            registration.setWanted(record)
        }
    }

    func beDiscoverable(_ isWanted: Bool) {
        room.call {
            let discoverability = self.discoverability ?? Discoverability(self.bluez, on: self.room.loop)
            self.discoverability = discoverability
            discoverability.setWanted(isWanted)
        }
    }

    var discoverabilityRefusal: BusFault? { room.call { self.discoverability?.refusal } }

    func answerPairing(_ pairing: BluetoothPairing) {
        room.call {
            self.agent = PairingAgent(self.bluez, pairing, on: self.room.loop)
            self.agent?.availabilityChanged()
        }
    }

    func stopAnsweringPairing() { room.call { self.agent?.stop() } }

    /// Acts as if there were a pipe to the device, so that bluetoothd keeps the device.
    func openPipe(to device: BluetoothAddress) {
        room.call {
            let retention = self.retention ?? DeviceRetention(self.bluez, on: self.room.loop)
            self.retention = retention
            retention.pipeOpened(to: device)
        }
    }

    func endPipe(to device: BluetoothAddress) { room.call { self.retention?.pipeEnded(to: device) } }

    // MARK: Events

    func availabilityChanged(from old: BlueZ.Availability) {
        registration?.availabilityChanged()
        discoverability?.availabilityChanged()
        agent?.availabilityChanged()
        retention?.availabilityChanged()
        room.note(Self.text(bluez.availability))
    }

    private static func text(_ availability: BlueZ.Availability) -> String {
        switch availability {
        case .unknown: "unknown"
        case .missing(let fault): "\(fault.cause)"
        case .adapter(let adapter): adapter.isDiscoverable ? "\(adapter.name), discoverable" : adapter.name
        }
    }

    func deviceSeen(_ device: BlueZObjects.Device) {
        retention?.deviceSeen(device)
        room.note("seen \(device.address) \(device.signal.map(String.init) ?? "without a signal")")
    }

    func deviceGone(_ device: BlueZObjects.Device) {
        retention?.deviceGone(device)
        room.note("gone \(device.address)")
    }
}
