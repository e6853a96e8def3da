import NighCore
import NighUV

/// Has bluetoothd keep the devices that pipes lead to.
///
/// bluetoothd calls a device that is not bonded temporary: 30 seconds (`TemporaryTimeout` in its main.conf) after an inquiry saw
/// the device last, it removes it and ends every connection to it. A socket of a program's own does not hold that up. Once a
/// program has asked to connect to the device through bluetoothd, the device is temporary no longer. So this asks, for a
/// profile that no device has: bluetoothd looks for it, answers that there is none, and connects nothing.
///
/// Confined to its loop; hence `@unchecked Sendable`.
final class DeviceRetention: @unchecked Sendable {
    /// How long until a device is asked for again that bluetoothd was busy with.
    private static let retry = Moment.Span.seconds(1)
    /// bluetoothd is doing something with the device or the adapter, and has not looked at what was asked.
    private static let passing: Set = ["org.bluez.Error.InProgress", "org.bluez.Error.NotReady"]

    private let bluez: BlueZ
    private let loop: UVEventLoop
    /// How many pipes lead to each device.
    private var pipeCounts: [BluetoothAddress: Int] = [:]
    /// bluetoothd's paths to the devices that it keeps, or was asked to.
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

    /// A pipe may be accepted before bluetoothd has told of the device it comes from.
    func deviceSeen(_ device: BlueZObjects.Device) { keep(device.address) }

    func deviceGone(_ device: BlueZObjects.Device) { kept.remove(device.path) }

    /// The adapter or bluetoothd may be another.
    func groundChanged() { for address in pipeCounts.keys { keep(address) } }

    private func keep(_ address: BluetoothAddress) {
        if generation != bluez.generation { kept = [] }
        generation = bluez.generation
        guard pipeCounts[address] != nil, let adapter = bluez.ground.adapter,
            let device = bluez.objects?.device(address, of: adapter), device.isBonded != true,
            kept.insert(device.path).inserted
        else { return }
        let generation = generation
        bluez.call(
            device.path, BlueZObjects.deviceInterface, "ConnectProfile",
            [.text(BluetoothUUID.random().description)]
        ) { [weak self] result in
            guard case .failure(let fault) = result, Self.passing.contains(fault.name) else { return }
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
