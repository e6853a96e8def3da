import NighCore

/// Decides which nearby devices may have sessions of the service and when to ask each of them, and remembers the
/// reports to the session. A value without I/O; the time is an argument.
///
/// A device is added because of its inquiry response, or because bluetoothd knows it. Only the answer of its service
/// discovery counts. That a device is no longer seen by inquiries says little, because a connected device often is not.
/// So a route is lost only when the device is asked again and no longer has the record, or does not answer twice.
package struct DeviceSurvey {
    /// How likely a device has sessions, before it is asked.
    package enum Likelihood: Int, Hashable, Sendable {
        /// It is a kind of device that may run a program of the service.
        case possible
        /// It has announced the service, now or earlier.
        case announced

        /// How many times longer a device without sessions waits to be asked again than a device with sessions.
        fileprivate var pauseFactor: Int64 { self == .announced ? 2 : 6 }
    }

    private struct Device {
        var likelihood: Likelihood
        /// The sessions that it had last, by channel. They have been reported to the session.
        var sightings: [UInt8: Sighting] = [:]
        var signal: Int64?
        /// Whether the inquiry that is in progress has seen it.
        var wasSeen = false
        /// Whether bluetoothd knows it now.
        var isKnown = true
        var nextQuery: Moment
        var wasAsked = false
        /// Whether it was to be asked again while it was being asked.
        var isStale = false
        /// How many times in a row it has not answered.
        var failures = 0
        /// The number of open pipes to it. While there is one, the device is present, whatever service discovery says.
        var pipes = 0
    }

    /// The most devices that are asked. If there are more, those that came first are asked.
    package static let deviceLimit = 256
    /// The pause before a device is asked again after a first failure.
    private static let retry = Moment.Span.seconds(2)
    /// A device that does not answer is asked less and less often. This is the longest pause, in intervals.
    private static let longestPause: Int64 = 16

    /// How many times longer than others a device waits to be asked again while a pipe to it is open.
    private static let pauseFactorWithPipe: Int64 = 6

    /// The time between two queries to a device that has sessions.
    package let interval: Moment.Span
    /// This side's own PeerID, which is never reported.
    package var own: PeerID?
    private var devices: [BluetoothAddress: Device] = [:]
    /// The devices that are being asked now.
    private var asked: Set<BluetoothAddress> = []

    package init(interval: Moment.Span) { self.interval = interval }

    /// The number of devices that may have sessions, and the number of sessions found on them.
    package var counts: (asked: Int, found: Int) {
        (devices.count, devices.values.reduce(0) { $0 + $1.sightings.count })
    }

    /// Whether a session at that destination has been reported.
    package func sees(_ destination: BluetoothDestination) -> Bool {
        guard let channel = destination.channel else { return false }
        return devices[destination.device]?.sightings[channel] != nil
    }

    /// Notes that a device was seen which offers the service, or may offer it. `signal` is in dBm; nil if unknown.
    package mutating func seen(
        _ address: BluetoothAddress, _ likelihood: Likelihood, signal: Int64?, now: Moment
    ) -> [SightingChange] {
        guard devices[address] != nil || devices.count < Self.deviceLimit else { return [] }
        var device = devices[address] ?? Device(likelihood: likelihood, nextQuery: now)
        if likelihood == .announced, device.likelihood == .possible {
            device.nextQuery = min(device.nextQuery, now)
        }
        device.likelihood = likelihood
        // A device that was gone and is back is asked soon. A device that does not answer is asked once for each
        // inquiry that sees it.
        if !device.isKnown || (device.failures > 0 && signal != nil && !device.wasSeen) {
            device.nextQuery = min(device.nextQuery, now + min(Self.retry, interval))
        }
        device.isKnown = true
        device.wasSeen = signal != nil
        // Between two inquiries bluetoothd reports no signal, so the last one is kept.
        device.signal = signal ?? device.signal
        let quality = Self.quality(of: device.signal)
        var changes: [SightingChange] = []
        for (channel, sighting) in device.sightings where Self.differs(sighting.quality, quality) {
            device.sightings[channel]?.quality = quality
            if let sighting = device.sightings[channel] { changes.append(.changed(sighting)) }
        }
        devices[address] = device
        return changes
    }

    /// Notes that bluetoothd has removed the device.
    package mutating func gone(_ address: BluetoothAddress, now: Moment) {
        devices[address]?.isKnown = false
        askSoon(address, now: now)
        forgetIfIdle(address)
    }

    /// Makes the device due at once, because its record may have changed.
    package mutating func askSoon(_ address: BluetoothAddress, now: Moment) {
        guard let device = devices[address] else { return }
        devices[address]?.nextQuery = min(device.nextQuery, now)
        if asked.contains(address) { devices[address]?.isStale = true }
    }

    /// Notes that a pipe to or from the device was opened, so the device is present.
    package mutating func pipeOpened(_ address: BluetoothAddress, now: Moment) {
        if devices[address] == nil, devices.count < Self.deviceLimit {
            devices[address] = Device(likelihood: .announced, isKnown: false, nextQuery: now)
        }
        devices[address]?.pipes += 1
        devices[address]?.failures = 0
    }

    /// Notes that such a pipe was closed.
    package mutating func pipeEnded(_ address: BluetoothAddress, now: Moment) {
        guard let device = devices[address], device.pipes > 0 else { return }
        devices[address]?.pipes -= 1
        askSoon(address, now: now)
        forgetIfIdle(address)
    }

    /// Returns the device to ask now, if any is due. Its answer must be passed to `answered` or `failed`.
    package mutating func takeDue(now: Moment) -> BluetoothAddress? {
        let due = devices.filter { $0.value.nextQuery <= now && !asked.contains($0.key) }
        let first = due.min { ($0.value.nextQuery, $0.key) < ($1.value.nextQuery, $1.key) }
        if let first {
            asked.insert(first.key)
            devices[first.key]?.wasAsked = true
        }
        return first?.key
    }

    /// When the next device is due.
    package var nextQuery: Moment {
        devices.filter { !asked.contains($0.key) }.map(\.value.nextQuery).min() ?? .never
    }

    /// Notes the answer of a device, with all records that it has.
    package mutating func answered(_ address: BluetoothAddress, _ records: [SessionRecord], now: Moment)
        -> [SightingChange]
    {
        asked.remove(address)
        guard var device = devices[address] else { return [] }
        device.failures = 0
        let before = device.sightings
        device.sightings = [:]
        // A session that has just changed its record may have two for a moment.
        for record in records.sorted(by: { $0.handle < $1.handle })
        where record.adapter == address && record.advertisement.peer != own {
            let sighting = Sighting(
                address: BluetoothDestination(address, channel: record.channel).transportAddress,
                advertisement: record.advertisement, quality: Self.quality(of: device.signal))
            device.sightings = device.sightings.filter {
                $0.value.advertisement.peer != record.advertisement.peer
            }
            device.sightings[record.channel] = sighting
        }
        // A device with an open pipe is present, and each query costs radio time.
        let pipeFactor: Int64 = device.pipes > 0 ? Self.pauseFactorWithPipe : 1
        let factor = device.sightings.isEmpty ? device.likelihood.pauseFactor : pipeFactor
        device.nextQuery =
            device.isStale ? now : now + Moment.Span(interval.duration * factor)
        device.isStale = false
        devices[address] = device
        var changes: [SightingChange] = []
        for (channel, sighting) in before.sorted(by: { $0.key < $1.key })
        where device.sightings[channel] == nil {
            changes.append(.lost(sighting.address))
        }
        for (channel, sighting) in device.sightings.sorted(by: { $0.key < $1.key }) {
            guard let old = before[channel] else {
                changes.append(.found(sighting))
                continue
            }
            if old != sighting { changes.append(.changed(sighting)) }
        }
        forgetIfIdle(address)
        return changes
    }

    /// Notes that a device has not answered.
    package mutating func failed(_ address: BluetoothAddress, now: Moment) -> [SightingChange] {
        asked.remove(address)
        guard var device = devices[address] else { return [] }
        device.failures += 1
        let factor = min(Int64(1) << Int64(min(device.failures - 1, 16)), Self.longestPause)
        let pause = Moment.Span(interval.duration * factor)
        device.nextQuery = now + (device.failures == 1 || device.isStale ? min(Self.retry, interval) : pause)
        device.isStale = false
        var changes: [SightingChange] = []
        if device.failures > 1, device.pipes == 0 {
            changes = device.sightings.values.map(\.address).sorted { $0.value < $1.value }.map { .lost($0) }
            device.sightings = [:]
        }
        devices[address] = device
        forgetIfIdle(address)
        return changes
    }

    /// Forgets everything, because the adapter is gone or another one is used.
    package mutating func clear() -> [SightingChange] {
        let all = devices.values.flatMap { $0.sightings.values.map(\.address) }
        devices = [:]
        asked = []
        return all.sorted { $0.value < $1.value }.map { .lost($0) }
    }

    private mutating func forgetIfIdle(_ address: BluetoothAddress) {
        guard let device = devices[address], !device.isKnown, device.pipes == 0, device.sightings.isEmpty,
            device.wasAsked, !asked.contains(address)
        else { return }
        devices[address] = nil
    }

    /// Maps the useful range of Bluetooth signals, from barely received to as strong as possible, to 0…1.
    private static func quality(of signal: Int64?) -> Double? {
        signal.map { min(max(Double($0 + 95) / 60, 0), 1) }
    }

    /// Whether two qualities differ by more than a tenth. Signals vary all the time, so smaller changes are not
    /// reported.
    private static func differs(_ left: Double?, _ right: Double?) -> Bool {
        guard let left, let right else { return (left == nil) != (right == nil) }
        return abs(left - right) > 0.1
    }
}
