import NighCore
import NighUV

/// Makes bluetoothd keep the devices that pipes lead to.
///
/// bluetoothd treats a device that is not bonded as temporary: 30 seconds (`TemporaryTimeout` in its main.conf) after
/// an inquiry last saw the device, it removes the device and ends every connection to it. A program's own socket does
/// not prevent that. Once a program has asked bluetoothd to connect to the device, the device is no longer temporary.
/// So this type asks bluetoothd to connect to a profile that no device has. bluetoothd looks for the profile, answers
/// that there is none, and connects nothing.
///
/// Loop only.
final class DeviceRetention {
    /// The pause before a request is repeated because bluetoothd was too busy for it.
    private static let retry = Moment.Span.seconds(1)

    private let bluez: BlueZ
    private let loop: UVEventLoop
    /// The number of pipes to each device.
    private var pipeCounts: [BluetoothAddress: Int] = [:]
    /// bluetoothd's paths of the devices that it keeps or was asked to keep.
    private var kept: Set<String> = []
    private var generation = 0

    init(_ bluez: BlueZ, on loop: UVEventLoop) {
        self.bluez = bluez
        self.loop = loop
    }

    func pipeOpened(to address: BluetoothAddress) {
        pipeCounts[address, default: 0] += 1
        keep(address)
    }

    func pipeEnded(to address: BluetoothAddress) {
        guard let count = pipeCounts[address] else { return }
        pipeCounts[address] = count > 1 ? count - 1 : nil
    }

    /// A pipe may be accepted before bluetoothd has reported the device it comes from.
    func deviceSeen(_ device: BlueZObjects.Device) { keep(device.address) }

    func deviceGone(_ device: BlueZObjects.Device) { kept.remove(device.path) }

    /// The adapter or bluetoothd may have changed.
    func availabilityChanged() { for address in pipeCounts.keys { keep(address) } }

    private func keep(_ address: BluetoothAddress) {
        if generation != bluez.generation { kept = [] }
        generation = bluez.generation
        guard pipeCounts[address] != nil, let adapter = bluez.availability.adapter,
            let device = bluez.objects?.device(address, of: adapter), device.isBonded != true,
            kept.insert(device.path).inserted
        else { return }
        let generation = generation
        bluez.call(
            device.path, BlueZObjects.deviceInterface, "ConnectProfile",
            [.text(BluetoothUUID.random().description)]
        ) { [weak self] result in
            guard case .failure(let fault) = result, fault.isTemporary else { return }
            self?.keepLater(device, in: generation)
        }
    }

    private func keepLater(_ device: BlueZObjects.Device, in generation: Int) {
        loop.schedule(at: loop.now + Self.retry) { [weak self] in
            guard let self, generation == bluez.generation else { return }
            kept.remove(device.path)
            keep(device.address)
        }
    }
}
