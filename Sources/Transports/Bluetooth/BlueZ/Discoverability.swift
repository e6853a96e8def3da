import NighCore
import NighUV

/// Keeps the adapter discoverable while that is wanted, and restores its earlier state afterwards.
///
/// bluetoothd switches discoverability off by itself after some minutes, and when it restarts. This type then switches
/// it on again, but not if a person has switched it off.
///
/// Loop only.
final class Discoverability {
    /// If discoverability is switched off sooner than this after it was switched on, a person has done it.
    private static let shortestAutomaticTimeout = Moment.Span.seconds(20)

    private let bluez: BlueZ
    private let loop: UVEventLoop
    private var isWanted = false
    /// The adapter that was switched on, when, and in which generation of bluetoothd.
    private var switched: (path: String, at: Moment, generation: Int)?
    private var wasSeenOn = false
    private(set) var refusal: BusFault?

    init(_ bluez: BlueZ, on loop: UVEventLoop) {
        self.bluez = bluez
        self.loop = loop
    }

    func setWanted(_ wanted: Bool) {
        isWanted = wanted
        guard !wanted else { return proceed() }
        guard let adapter = bluez.availability.adapter, adapter.path == switched?.path else {
            return switched = nil
        }
        switched = nil
        wasSeenOn = false
        bluez.set("Discoverable", .boolean(false))
    }

    /// Called when the adapter or one of its properties has changed.
    func availabilityChanged() { proceed() }

    private func proceed() {
        guard isWanted, let adapter = bluez.availability.adapter else { return }
        guard !adapter.isDiscoverable else { return wasSeenOn = true }
        if let switched, switched.path == adapter.path, switched.generation == bluez.generation {
            // It is not on yet, or a person has switched it off.
            guard wasSeenOn, loop.now - switched.at >= Self.shortestAutomaticTimeout else { return }
        }
        switched = (adapter.path, loop.now, bluez.generation)
        wasSeenOn = false
        bluez.set("Discoverable", .boolean(true)) { [weak self] result in
            guard case .failure(let fault) = result else {
                self?.refusal = nil
                return
            }
            self?.refusal = fault
            self?.switched = nil
        }
    }
}
