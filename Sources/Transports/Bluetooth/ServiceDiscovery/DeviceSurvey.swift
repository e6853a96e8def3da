import NighCore

/// Which devices around may have sessions of the service that is looked for, when each is asked for them, and what the session
/// has been told so far. A value without I/O; time comes in.
///
/// A device comes in by its inquiry response or by what bluetoothd knows of it; what counts is what its service discovery
/// answers. That a device is seen no more says little (a connected device often is not), so a route is lost only when the device,
/// asked again, has the record no more or does not answer twice.
package struct DeviceSurvey {
    /// What a device lets hope for before it is asked.
    package enum Promise: Int, Hashable, Sendable {
        /// It is a kind of device that may run a program of the service.
        case possible
        /// It has said that it has the service, now or earlier.
        case saysSo

        /// How many times longer than one with sessions it waits to be asked again, if it had none.
        fileprivate var patience: Int64 { self == .saysSo ? 2 : 6 }
    }

    private struct Device {
        var promise: Promise
        /// What it was last known to have, by channel; told to the session.
        var sightings: [UInt8: Sighting] = [:]
        var signal: Int64?
        /// Whether an inquiry has heard it that is not over yet.
        var isHeard = false
        /// Whether bluetoothd knows of it at present.
        var isKnown = true
        var nextLook: Moment
        var wasAsked = false
        /// It was to be asked anew while it was being asked.
        var isDoubted = false
        /// How often in a row it has not answered.
        var failures = 0
        /// How many pipes are open to it: it is there, whatever service discovery says.
        var pipes = 0
    }

    /// So many devices at most are asked; in a crowd of more, those that came first.
    package static let deviceLimit = 256
    /// So long after a first failure a device is asked again.
    private static let retry = Moment.Span.seconds(2)
    /// A device that does not answer is asked less and less often, down to once in so many intervals.
    private static let longestPause: Int64 = 16

    /// How many times longer than others a device waits to be asked again while a pipe to it is open.
    private static let patienceWithPipe: Int64 = 6

    /// How often a device that has sessions is asked whether it still has.
    package let interval: Moment.Span
    /// Who is never seen: this side itself.
    package var own: PeerID?
    private var devices: [BluetoothAddress: Device] = [:]
    /// Asked at present.
    private var asked: Set<BluetoothAddress> = []

    package init(interval: Moment.Span) { self.interval = interval }

    /// How many devices may have sessions, and how many of them do.
    package var counts: (asked: Int, found: Int) {
        (devices.count, devices.values.reduce(0) { $0 + $1.sightings.count })
    }

    /// Whether the session was told of somebody there.
    package func sees(_ destination: BluetoothDestination) -> Bool {
        guard let channel = destination.channel else { return false }
        return devices[destination.device]?.sightings[channel] != nil
    }

    /// A device that offers the service, or may do so, was seen; with `signal` decibels, where that is known.
    package mutating func seen(
        _ address: BluetoothAddress, _ promise: Promise, signal: Int64?, now: Moment
    ) -> [SightingChange] {
        guard devices[address] != nil || devices.count < Self.deviceLimit else { return [] }
        var device = devices[address] ?? Device(promise: promise, nextLook: now)
        if promise == .saysSo, device.promise == .possible { device.nextLook = min(device.nextLook, now) }
        device.promise = promise
        // Whoever was away and is back is asked soon; whoever does not answer, once each inquiry that hears of it.
        if !device.isKnown || (device.failures > 0 && signal != nil && !device.isHeard) {
            device.nextLook = min(device.nextLook, now + min(Self.retry, interval))
        }
        device.isKnown = true
        device.isHeard = signal != nil
        // Between two inquiries bluetoothd knows no signal; then the last one stands.
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

    /// bluetoothd has forgotten the device.
    package mutating func gone(_ address: BluetoothAddress, now: Moment) {
        devices[address]?.isKnown = false
        lookSoon(address, now: now)
        forgetIfIdle(address)
    }

    /// Something says that what is known of the device may not be so any more: it is asked at once.
    package mutating func lookSoon(_ address: BluetoothAddress, now: Moment) {
        guard let device = devices[address] else { return }
        devices[address]?.nextLook = min(device.nextLook, now)
        if asked.contains(address) { devices[address]?.isDoubted = true }
    }

    /// A pipe to the device, or from it, was opened: somebody is there.
    package mutating func pipeOpened(_ address: BluetoothAddress, now: Moment) {
        if devices[address] == nil, devices.count < Self.deviceLimit {
            devices[address] = Device(promise: .saysSo, isKnown: false, nextLook: now)
        }
        devices[address]?.pipes += 1
        devices[address]?.failures = 0
    }

    /// It was closed.
    package mutating func pipeEnded(_ address: BluetoothAddress, now: Moment) {
        guard let device = devices[address], device.pipes > 0 else { return }
        devices[address]?.pipes -= 1
        lookSoon(address, now: now)
        forgetIfIdle(address)
    }

    /// The device to be asked now, if any is due; its answer is told by `answered` or `failed`.
    package mutating func takeDue(now: Moment) -> BluetoothAddress? {
        let due = devices.filter { $0.value.nextLook <= now && !asked.contains($0.key) }
        let first = due.min { ($0.value.nextLook, $0.key) < ($1.value.nextLook, $1.key) }
        if let first {
            asked.insert(first.key)
            devices[first.key]?.wasAsked = true
        }
        return first?.key
    }

    /// When the next is due.
    package var nextLook: Moment {
        devices.filter { !asked.contains($0.key) }.map(\.value.nextLook).min() ?? .never
    }

    /// A device has answered, with all it has.
    package mutating func answered(_ address: BluetoothAddress, _ records: [SessionRecord], now: Moment)
        -> [SightingChange]
    {
        asked.remove(address)
        guard var device = devices[address] else { return [] }
        device.failures = 0
        let before = device.sightings
        device.sightings = [:]
        // Of a session that has just changed what it says there may be two for a moment.
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
        // Whoever we have a pipe to is there, and each look costs the radio something.
        let patience: Int64 = device.pipes > 0 ? Self.patienceWithPipe : 1
        let factor = device.sightings.isEmpty ? device.promise.patience : patience
        device.nextLook =
            device.isDoubted ? now : now + Moment.Span(nanoseconds: interval.nanoseconds * factor)
        device.isDoubted = false
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

    /// A device has not answered.
    package mutating func failed(_ address: BluetoothAddress, now: Moment) -> [SightingChange] {
        asked.remove(address)
        guard var device = devices[address] else { return [] }
        device.failures += 1
        let factor = min(Int64(1) << Int64(min(device.failures - 1, 16)), Self.longestPause)
        let pause = Moment.Span(nanoseconds: interval.nanoseconds * factor)
        device.nextLook = now + (device.failures == 1 || device.isDoubted ? min(Self.retry, interval) : pause)
        device.isDoubted = false
        var changes: [SightingChange] = []
        if device.failures > 1, device.pipes == 0 {
            changes = device.sightings.values.map(\.address).sorted { $0.value < $1.value }.map { .lost($0) }
            device.sightings = [:]
        }
        devices[address] = device
        forgetIfIdle(address)
        return changes
    }

    /// The adapter is gone, or another is used: nothing is seen any more.
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

    /// Bluetooth's useful range of signals, from barely to as loud as it gets.
    private static func quality(of signal: Int64?) -> Double? {
        signal.map { min(max(Double($0 + 95) / 60, 0), 1) }
    }

    /// A signal wavers all the time; only more than a tenth is news.
    private static func differs(_ left: Double?, _ right: Double?) -> Bool {
        guard let left, let right else { return (left == nil) != (right == nil) }
        return abs(left - right) > 0.1
    }
}
